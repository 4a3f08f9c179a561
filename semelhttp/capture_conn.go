package semelhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Flush is FlushError for handlers that ask for an http.Flusher.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError lets the client of a stream have what was written, and everything after it
// at once; the response can then not be stored. Any other response stays where it is, and
// goes out when its outcome is stored: many handlers, and httputil.ReverseProxy, flush
// responses that are no streams.
func (c *capture) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		c.refused++
		return ErrResponseClosed
	case c.hijacked:
		return http.ErrHijacked
	case c.sealed:
		return nil
	}
	if c.status == 0 {
		c.begin(http.StatusOK)
	}
	if !c.passing && !c.streams.has(c.sent.lines("Content-Type")) {
		return nil
	}
	c.pass()
	return http.NewResponseController(c.w).Flush()
}

// Hijack hands over the connection; what then happens on it cannot be stored.
// It is refused where the response must wait for the outcome.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		c.refused++
		return nil, nil, ErrResponseClosed
	case c.sealed:
		return nil, nil, fmt.Errorf("hijack before the outcome stands: %w", errors.ErrUnsupported)
	}
	if c.status != 0 {
		c.pass()
	}
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	c.hijacked = err == nil
	return conn, rw, err
}

// ReadFrom takes all of src, as io.Copy does.
func (c *capture) ReadFrom(src io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{c}, src)
}

// Unwrap lets http.ResponseController reach deadlines and full duplex. What
// writes, flushes or hijacks is taken by capture itself before it gets there.
func (c *capture) Unwrap() http.ResponseWriter {
	if c.over.Load() {
		return &written{header: make(http.Header)}
	}
	return c.w
}

var (
	_ http.Flusher    = (*capture)(nil)
	_ http.Hijacker   = (*capture)(nil)
	_ io.ReaderFrom   = (*capture)(nil)
	_ io.StringWriter = (*capture)(nil)
)
