package semelhttp

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Flush is FlushError for handlers that use an http.Flusher.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError sends what was written if the response is a stream, and sends all
// later writes at once; the response can then not be stored. Any other response is
// held back until its outcome is stored: many handlers, and httputil.ReverseProxy,
// flush responses that are not streams.
func (c *capture) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		c.refused++
		return ErrResponseClosed
	case c.sealed:
		return nil
	}
	if c.own.Status == 0 {
		c.begin(http.StatusOK)
	}
	if !c.passing && !isStream(c.own.Header["Content-Type"], c.StreamTypes) {
		return nil
	}
	c.pass()
	return http.NewResponseController(c.w).Flush()
}

// Hijack refuses to hand over the connection: what a handler sends on it cannot be
// stored.
func (*capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("semelhttp: a protected response cannot be hijacked: %w", errors.ErrUnsupported)
}

// Unwrap lets http.ResponseController set deadlines and full duplex. capture itself
// has the methods that write, flush or hijack. It returns nil once the writer may
// belong to another client.
func (c *capture) Unwrap() http.ResponseWriter {
	if c.over.Load() {
		return nil
	}
	return c.w
}

// streamTypes are the media types of responses that are streams.
func streamTypes() []string {
	return []string{
		"text/event-stream", "application/x-ndjson", "application/jsonl", "application/grpc", "multipart/x-mixed-replace",
	}
}

// isStream reports whether a response with these lines of Content-Type is a stream.
func isStream(lines, types []string) bool {
	name, _, _ := strings.Cut(strings.Join(lines, ";"), ";")
	return slices.ContainsFunc(types, func(t string) bool {
		t = strings.TrimSpace(t)
		return t == "*" || strings.EqualFold(t, strings.TrimSpace(name))
	})
}
