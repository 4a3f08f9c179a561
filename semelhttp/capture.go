package semelhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
)

// ErrResponseClosed is returned by writes that come after the outcome was
// decided: behind [Middleware] after the function given to semel.InTx has
// returned, and everywhere after the handler has. They change nothing.
var ErrResponseClosed = errors.New("semelhttp: written after the outcome")

// capture is the ResponseWriter that a protected handler writes to. It holds
// the response back until the outcome stands, or, when that is not possible,
// passes it on and remembers that it cannot be stored.
//
// It has a lock, unlike net/http's writer, because a goroutine that the handler
// left behind may still write while the outcome is being decided.
type capture struct {
	w     http.ResponseWriter
	limit int64

	mu       sync.Mutex // guards what follows, up to closed
	sent     fields
	room     *snapshot // of sent
	body     *[]byte   // that is held back
	size     int64
	status   int32 // 0: nothing was written
	refused  int32 // writes that came too late
	passing  bool  // the response is on its way to the client
	hijacked bool
	closed   bool

	sealed  bool        // nothing may go out before the outcome stands
	streams streamTypes // of responses that a flush lets out
	over    atomic.Bool // the handler has returned, and has no more to do with w
}

// Header returns the client's headers: what of them is sent is what they were when
// the status was written. They are not guarded, as net/http's are not. Whoever was left
// behind by the handler gets none: the writer may be another client's by then.
func (c *capture) Header() http.Header {
	if c.over.Load() {
		return make(http.Header)
	}
	return c.w.Header()
}

// WriteHeader takes the status and the headers as they are now. Informational
// responses go out at once: they are no part of the outcome.
func (c *capture) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("semelhttp: invalid status %d", status)) //nolint:forbidigo // as net/http does: there is no error to return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		c.refused++
	case c.status != 0 || c.hijacked:
	case status < 200 && status != http.StatusSwitchingProtocols:
		c.w.WriteHeader(status)
	default:
		c.begin(status)
	}
}

func (c *capture) begin(status int) {
	c.status = int32(status)
	c.sent = c.room.of(c.w.Header())
}

// Write takes p, or passes it on once the response cannot be held back.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.refused++
		return 0, ErrResponseClosed
	}
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	if c.status == 0 {
		c.begin(http.StatusOK)
	}
	if !hasBody(int(c.status)) {
		return 0, http.ErrBodyNotAllowed
	}
	c.size += int64(len(p))
	if !c.sealed && c.size > c.limit {
		c.pass()
	}
	if c.passing {
		return c.w.Write(p)
	}
	*c.body = append(*c.body, p...)
	return len(p), nil
}

// WriteString is Write of a string.
func (c *capture) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// release lets go of what is used for others after it. The capture is closed.
func (c *capture) release() { c.sent, c.room, c.body = nil, nil, nil }

// pass lets the response go out from here on. Its length is not announced, so
// that it is complete only when the handler has returned and the outcome
// stands; until then the client knows that it has a part.
func (c *capture) pass() {
	if c.passing {
		return
	}
	c.passing = true
	h := c.w.Header()
	trailers := c.sent.trailers(h) // that were set already
	c.sent.replace(h)
	delete(h, contentLength)
	c.w.WriteHeader(int(c.status))
	maps.Copy(h, trailers)
	if len(*c.body) > 0 {
		_, _ = c.w.Write(*c.body) // the next write of the handler meets the same error
	}
}

// reset drops what was written, so that the handler can answer anew. What is on
// its way to the client cannot be taken back. With mu locked.
func (c *capture) reset() {
	c.closed, c.refused = false, 0
	if c.passing || c.hijacked {
		return
	}
	c.status, c.sent, c.size, *c.body = 0, nil, 0, (*c.body)[:0]
}

// result returns the response and whether it can be stored. Its body is there until
// the capture is released. With mu locked, or closed.
func (c *capture) result() (r answered, storable bool) {
	if c.status == 0 && !c.hijacked {
		c.begin(http.StatusOK)
	}
	r = answered{status: int(c.status), header: c.sent, body: *c.body}
	return r, !c.passing && !c.hijacked && c.size <= c.limit && c.status >= http.StatusOK
}

// started reports whether the handler has written anything of its response. With mu
// locked.
func (c *capture) started() bool { return c.status != 0 || c.hijacked }

// gone reports whether the client has the response already, or a part of it. The
// capture is closed.
func (c *capture) gone() bool { return c.passing || c.hijacked }

// hasBody reports whether a response with that status can have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
