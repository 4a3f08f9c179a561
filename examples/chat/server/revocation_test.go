package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel/examples/chat/server"
	"github.com/semelgo/semel/outbox"
)

// stream is a stream of server-sent events.
type stream struct {
	answer *http.Response
	lines  *bufio.Scanner
}

// listen opens a stream of a user, which has begun.
func (c *client) listen(t *testing.T, as user, query string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/v1/events"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+as.Token)
	s := &stream{}
	if s.answer, err = c.http.Do(r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.answer.Body.Close() })
	if s.answer.StatusCode != http.StatusOK {
		t.Fatalf("GET /v1/events = %s", s.answer.Status)
	}
	s.lines = bufio.NewScanner(s.answer.Body)
	s.until(t, "hello")
	return s
}

// until reads until a push of a kind, and returns it.
func (s *stream) until(t *testing.T, kinds ...string) map[string]any {
	t.Helper()
	for s.lines.Scan() {
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		var push map[string]any
		if !ok || json.Unmarshal([]byte(data), &push) != nil {
			continue
		}
		if kind, _ := push["push"].(string); slices.Contains(kinds, kind) {
			return push
		}
	}
	t.Fatalf("the stream ended without %s: %v", kinds, s.lines.Err())
	return nil
}

func (s *stream) wantRevoked(t *testing.T) {
	t.Helper()
	if bye := s.until(t, "bye"); bye["reason"] != "revoked" {
		t.Errorf("the stream ends with %v, want revoked", bye)
	}
}

// TestRevocationsAreRepeated: the end of a session is an event of the outbox, which is published
// until the bus takes it. So a stream that only listens ends.
func TestRevocationsAreRepeated(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	publish := func(next outbox.Publisher) outbox.Publisher {
		return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
			if m.Topic == "session" && !refused.Swap(true) {
				return errors.New("the bus is down")
			}
			return next.Publish(ctx, m)
		})
	}
	s := serveLocal(t, server.Hooks{Publish: publish}, newFiles(t, "inline").args(time.Minute)...)
	ann := s.signIn(t, "ann")
	listens := s.listen(t, ann, "")
	s.send(t, request{method: "DELETE", path: "/v1/sessions/current", as: ann}).want(t, http.StatusNoContent, "")
	listens.wantRevoked(t)
	if !refused.Load() {
		t.Error("the revocation was not an event of the outbox")
	}
}

// TestTheOldestSessionIsRevoked: the stream of a session that a further log-in replaces ends.
func TestTheOldestSessionIsRevoked(t *testing.T) {
	t.Parallel()
	s := serveLocal(t, server.Hooks{}, newFiles(t, "inline").args(time.Minute)...)
	ann := s.signIn(t, "ann")
	listens := s.listen(t, ann, "")
	for range 50 {
		s.logIn(t, "ann", "another")
	}
	listens.wantRevoked(t)
}

// TestOldSessionsEnd: a session that is too old is refused.
func TestOldSessionsEnd(t *testing.T) {
	t.Parallel()
	f := newFiles(t, "inline")
	s := serveLocal(t, server.Hooks{}, f.args(time.Minute)...)
	ann := s.signIn(t, "ann")
	s.stop()
	s = serveLocal(t, server.Hooks{}, append(f.args(time.Minute), "-session-age", "1us")...)
	s.send(t, request{method: "GET", path: "/v1/groups", as: ann}).want(t, http.StatusUnauthorized, "unauthenticated")
	s.send(t, request{method: "GET", path: "/v1/events", as: ann}).want(t, http.StatusUnauthorized, "")
}
