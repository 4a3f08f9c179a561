package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/hub"
	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestStreamsOfAUserAreLimited: both transports count, and an ended stream does not.
func TestStreamsOfAUserAreLimited(t *testing.T) {
	s := newSite(t, live.Options{Hub: hub.Options{MaxSessions: 2}})
	first := login(t, s, 1)
	openStream(t, s, "?ticket=token-1")()
	refused := dial(t, s, "")
	if err := refused.refused(`"op":"hello","token":"token-1"`); err.Code != "too_many_streams" || !err.Temporary || err.RetryAfter == 0 {
		t.Errorf("a third stream: %+v", err)
	}
	refused.wantClosed(hub.CodeTooMany)
	if answer := get(t, s.url+"/v1/events?ticket=token-1"); answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "60" {
		t.Errorf("a third stream of events: %s, retry after %s", answer.Status, answer.Header.Get("Retry-After"))
	}
	login(t, s, 2)
	_ = first.ws.CloseNow()
	s.untilAccepted(t)
}

// untilAccepted opens sockets until user 1 may have another stream.
func (s *site) untilAccepted(t *testing.T) {
	t.Helper()
	check.NoError(t, realtest.Retry(t.Context(), func() bool {
		c := dial(t, s, "")
		accepted := c.answer(c.ask(`"op":"hello","token":"token-1"`)).Err == nil
		if !accepted {
			_ = c.ws.CloseNow() // or it counts as a socket without a session while the server closes it
		}
		return accepted
	}))
}

// TestSilentSocketsAreLimited, by address and in total, until they say hello or end. A socket with
// a ticket in its URL is not one of them.
func TestSilentSocketsAreLimited(t *testing.T) {
	s := newSite(t, live.Options{MaxSilent: 3, MaxSilentFrom: 2, Address: func(r *http.Request) string { return r.URL.Query().Get("from") }})
	refused := func(from string, status int) {
		t.Helper()
		_, answer, err := s.open(t, "?from="+from, nil)
		if err == nil || answer.StatusCode != status || answer.Header.Get("Retry-After") == "" {
			t.Errorf("a further silent socket from %s: %v, want %d and a time", from, err, status)
		}
	}
	first := dial(t, s, "?from=a")
	dial(t, s, "?from=a")
	refused("a", http.StatusTooManyRequests)
	last := dial(t, s, "?from=b")
	refused("c", http.StatusServiceUnavailable)
	dial(t, s, "?from=a&ticket=token-1").call(`"op":"ping"`)
	first.call(`"op":"hello","token":"token-2"`)
	// The place is free when the handler of the request has ended, shortly after the answer.
	admitted := func(from string) {
		t.Helper()
		err := realtest.Retry(t.Context(), func() bool {
			_, _, err := s.open(t, "?from="+from, nil)
			return err == nil
		})
		check.NoError(t, err, "a silent socket from %s", from)
	}
	admitted("a")
	_ = last.ws.CloseNow()
	admitted("c")
}

func TestGroupsOfAStreamAreLimited(t *testing.T) {
	s := newSite(t, live.Options{})
	query := "?ticket=token-1" + strings.Repeat("&group=g:0", 101)
	check.Equal(t, get(t, s.url+"/v1/events"+query).StatusCode, http.StatusBadRequest, "101 groups")
}

// TestCatchUpsOfAStreamAreWritten one after the other: what a client has missed of a group is read
// after the answer for the group before was written.
func TestCatchUpsOfAStreamAreWritten(t *testing.T) {
	s := newSite(t, live.Options{})
	var mu sync.Mutex
	var steps, want []string
	var query strings.Builder
	query.WriteString("?ticket=token-1")
	for n := range 20 {
		fmt.Fprintf(&query, "&group=g%d:0", n)
		want = append(want, fmt.Sprintf("read g%d", n), fmt.Sprintf("wrote g%d", n))
	}
	step := func(what string) bool {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, what)
		return len(steps) == len(want)
	}
	s.backend.onCatchUp = func(group string) { step("read " + group) }
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/events"+query.String(), http.NoBody)
	w := stepWriter{header: make(http.Header), wrote: func(text string) error {
		for part := range strings.SplitSeq(text, "\n\n") {
			if _, after, ok := strings.Cut(part, `"subscribed","group":"`); ok {
				group, _, _ := strings.Cut(after, `"`)
				if step("wrote " + group) {
					return http.ErrHandlerTimeout // ends the stream
				}
			}
		}
		return nil
	}}
	s.Events(&w, r)
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q", steps)
	}
}

// stepWriter is a response whose writes call a function.
type stepWriter struct {
	header http.Header
	wrote  func(text string) error
}

func (w *stepWriter) Header() http.Header              { return w.header }
func (*stepWriter) WriteHeader(int)                    {}
func (*stepWriter) Flush()                             {}
func (*stepWriter) SetWriteDeadline(_ time.Time) error { return nil }

func (w *stepWriter) Write(p []byte) (int, error) { return len(p), w.wrote(string(p)) }
