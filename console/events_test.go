package console_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/console"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// bubble is a console without connections, for tests that run in a synctest bubble.
type bubble struct{ pages http.Handler }

func newBubble(t *testing.T, e console.Engine) bubble {
	t.Helper()
	return bubble{check.Must(console.Handler([]console.Engine{e}, console.Options{
		Authenticate: func(*http.Request) (console.Actor, error) {
			return console.Actor{Name: "ann", Reveal: true, Write: true}, nil
		},
		Audit: func(context.Context, console.Event) error { return nil },
	}))(t)}
}

// get reads a page, or all events of a stream until it ends.
func (b bubble) get(t *testing.T, path string) answer {
	t.Helper()
	return b.send(httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
}

func (b bubble) post(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.send(r)
}

func (b bubble) send(r *http.Request) answer {
	w := httptest.NewRecorder()
	b.pages.ServeHTTP(w, r)
	res := w.Result() //nolint:bodyclose // it is in memory
	res.Request = r
	return answer{res, w.Body.String()}
}

// events returns the events of a stream.
func (a answer) events(t *testing.T) (all []string) {
	t.Helper()
	for part := range strings.SplitSeq(strings.TrimSuffix(a.body, "\n\n"), "\n\n") {
		text, ok := strings.CutPrefix(part, "data: ")
		var html string
		if err := json.Unmarshal([]byte(text), &html); !ok || err != nil {
			t.Fatalf("not an event: %q: %v", part, err)
		}
		all = append(all, html)
	}
	return all
}

// An event arrives every 5 seconds for 5 minutes, and shows what has changed.
func TestEvents(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", semel.OperationOptions[string]{})
	for _, c := range []struct{ path, before, after string }{
		{"events?view=overview", `<span class="figure">1</span> in doubt`, `<span class="figure">2</span> in doubt`},
		{"events?view=doubt", "key-1", "key-2"},
		{"events?view=record&id=" + op.Call(semel.Shared(), "key-1", "").ID().String(), "Now InDoubt", "Now Succeeded"},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				engine := check.Must(semel.NewRunner(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure}))(t)
				fail := func(key string) {
					_, _, err := semel.Do(t.Context(), engine, op.Call(semel.Shared(), key, ""), func(context.Context) (string, error) { return "", errBank })
					check.ErrorIs(t, err, semel.ErrOutcomeUnknown, "the call")
				}
				fail("key-1")
				go func() {
					pass(time.Minute + time.Second)
					if c.after == "Now Succeeded" {
						resolve(t, engine, op.Call(semel.Shared(), "key-1", "").ID())
					} else {
						fail("key-2")
					}
				}()
				a := newBubble(t, console.Engine{Runner: engine}).get(t, "/"+c.path)
				a.has(t, http.StatusOK)
				check.Equal(t, a.Header.Get("Content-Type"), "text/event-stream", "Content-Type")
				events := a.events(t)
				if n := len(events); n < 59 || n > 61 {
					t.Errorf("%d events in 5 minutes", n)
				}
				for i, text := range []string{c.before, c.after} {
					if at := []int{0, len(events) - 1}[i]; !strings.Contains(events[at], text) || !strings.Contains(events[at], "data-live=") {
						t.Errorf("event %d has no %q:\n%s", at, text, events[at])
					}
				}
				if strings.Contains(events[0], c.after) {
					t.Errorf("the first event has %q", c.after)
				}
			})
		})
	}
}

// Pages that change say where their events are; others, and unknown ones, have none.
func TestPagesWithEvents(t *testing.T) {
	t.Parallel()
	g := memoryRig(t)
	id := g.run(t, g.charge, "order-1", true).String()
	for path, events := range map[string]string{
		"": "events?view=overview", "doubt?operation=charge": "events?operation=charge&amp;view=doubt", "record?id=" + id: "events?id=" + id + "&amp;view=record",
	} {
		g.get(t, path).has(t, http.StatusOK, `data-events="`+events+`"`)
	}
	for _, path := range []string{"records", "dead", "storage", "preview?action=purge"} {
		g.get(t, path).has(t, http.StatusOK).hasNot(t, "data-events", "data-live")
	}
	g.post(t, "record", map[string][]string{"id": {id}}).has(t, http.StatusOK).hasNot(t, "data-events") // it would hide again what it reveals
	g.get(t, "events?view=records").has(t, http.StatusBadRequest)
	g.get(t, "events?view=record&id="+strings.Repeat("0", 32)).has(t, http.StatusNotFound)
}
