package live_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semelgo/semel/examples/chat/live"
	"github.com/semelgo/semel/internal/check"
)

func TestEvents(t *testing.T) {
	s := newSite(t, live.Options{})
	author := login(t, s, 1)
	author.call(`"op":"send","group":"g","key":"k1","text":"before"`)
	read := openStream(t, s, "?ticket=token-2&group=g:0&group=other:0")
	seen := []string{read()}
	for range 2 {
		seen = append(seen, read())
	}
	for i, want := range []string{`"push":"hello"`, `"messages":[{"author_id":1,"change":1,"seq":1,"text":"before"}]`, `"code":"not_found"`} {
		if !strings.Contains(seen[i], want) {
			t.Errorf("event %d is %s, want %s", i, seen[i], want)
		}
	}
	author.call(`"op":"send","group":"g","key":"k2","text":"after"`)
	if got := read(); !strings.Contains(got, `"text":"after"`) {
		t.Errorf("received %s, want the message", got)
	}
	go func() { _ = s.Drain(context.WithoutCancel(t.Context()), 0) }()
	if got := read(); !strings.Contains(got, `"reason":"drain"`) {
		t.Errorf("received %s, want bye", got)
	}
}

func TestEventsUnauthenticated(t *testing.T) {
	s := newSite(t, live.Options{})
	for _, query := range []string{"", "?ticket=nonsense"} {
		check.Equal(t, get(t, s.url+"/v1/events"+query).StatusCode, http.StatusUnauthorized, "%q", query)
	}
}

func get(t *testing.T, url string) *http.Response {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	web := &http.Transport{}
	t.Cleanup(web.CloseIdleConnections)
	answer := check.Must(web.RoundTrip(r))(t)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// openStream returns a function that reads the next event.
func openStream(t *testing.T, s *site, query string) func() string {
	t.Helper()
	body := get(t, s.url+"/v1/events"+query).Body
	var rest string
	return func() string {
		t.Helper()
		buffer := make([]byte, 4096)
		for {
			if event, after, ok := strings.Cut(rest, "\n\n"); ok {
				rest = after
				return event
			}
			n, err := body.Read(buffer)
			rest += string(buffer[:n])
			if err != nil && n == 0 {
				if err == io.EOF {
					t.Fatalf("the stream has ended with %q", rest)
				}
				t.Fatal(err)
			}
		}
	}
}
