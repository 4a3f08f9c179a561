package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// stream is a stream of server-sent events.
type stream struct {
	answer *http.Response
	lines  *bufio.Scanner
}

// listen opens a stream of a user, which has begun.
func (c *client) listen(t *testing.T, as user, query string) *stream {
	t.Helper()
	r := check.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/v1/events"+query, http.NoBody))(t)
	r.Header.Set("Authorization", "Bearer "+as.Token)
	s := &stream{}
	s.answer = check.Must(c.http.Do(r))(t)
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
	check.Equal(t, s.until(t, "bye")["reason"].(string), "revoked", "the reason of the stream's end")
}
