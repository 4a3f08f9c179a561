package semelhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
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
	w      http.ResponseWriter
	limit  int64
	sealed bool // nothing may go out before the outcome stands

	header http.Header // the handler's; not guarded, as net/http's is not

	mu       sync.Mutex // guards what follows
	status   int        // 0: nothing was written
	sent     fields
	room     snapshot // of sent
	body     *buffer
	buffers  *buffers
	size     int64
	passing  bool // the response is on its way to the client
	hijacked bool
	closed   bool
	refused  int // writes that came too late
}

// headerFrom returns a header of the handler's own, which begins as h.
func headerFrom(h http.Header) http.Header {
	if len(h) == 0 {
		return make(http.Header)
	}
	return h.Clone()
}

// Header returns the handler's own headers, which begin as those that were set
// before it.
func (c *capture) Header() http.Header { return c.header }

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
		c.inform(status)
	default:
		c.begin(status)
	}
}

func (c *capture) begin(status int) {
	c.status = status
	c.sent = c.room.of(c.header)
}

func (c *capture) inform(status int) {
	before := c.w.Header().Clone()
	replace(c.w.Header(), c.header)
	c.w.WriteHeader(status)
	replace(c.w.Header(), before)
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
	if !hasBody(c.status) {
		return 0, http.ErrBodyNotAllowed
	}
	c.size += int64(len(p))
	if !c.sealed && c.size > c.limit {
		c.pass()
	}
	if c.passing {
		return c.w.Write(p)
	}
	if c.body == nil {
		c.body = c.buffers.get()
	}
	c.body.b = append(c.body.b, p...)
	return len(p), nil
}

// WriteString is Write of a string.
func (c *capture) WriteString(s string) (int, error) { return c.Write([]byte(s)) }

// held is the body that is held back.
func (c *capture) held() []byte {
	if c.body == nil {
		return nil
	}
	return c.body.b
}

// drop lets go of the body that is held back. What shares its memory is over.
func (c *capture) drop() {
	c.buffers.put(c.body)
	c.body = nil
}

// release closes the capture for good and drops its body.
func (c *capture) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.drop()
}

// pass lets the response go out from here on. Its length is not announced, so
// that it is complete only when the handler has returned and the outcome
// stands; until then the client knows that it has a part.
func (c *capture) pass() {
	if c.passing {
		return
	}
	c.passing = true
	h := c.w.Header()
	c.sent.replace(h)
	delete(h, "Content-Length")
	c.w.WriteHeader(c.status)
	if text := c.held(); len(text) > 0 {
		_, _ = c.w.Write(text) // the next write of the handler meets the same error
	}
	c.drop()
}

// reset drops what was written, so that the handler can answer anew. What is on
// its way to the client cannot be taken back.
func (c *capture) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.refused = false, 0
	if c.passing || c.hijacked {
		return
	}
	c.status, c.sent, c.size = 0, nil, 0
	c.drop()
}

// result returns the response and whether it can be stored. Its body is there until
// the capture is released.
func (c *capture) result() (r answered, storable bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == 0 && !c.hijacked {
		c.begin(http.StatusOK)
	}
	r = answered{status: c.status, header: c.sent, body: c.held()}
	return r, !c.passing && !c.hijacked && c.size <= c.limit && c.status >= http.StatusOK
}

// started reports whether the handler has written anything of its response.
func (c *capture) started() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status != 0 || c.hijacked
}

// completes ends a response that is on its way, and reports whether it was.
func (c *capture) completes() bool {
	passing, hijacked := c.gone()
	if passing && !hijacked {
		c.trailers()
	}
	return passing || hijacked
}

// gone reports whether the client is being sent the response already.
func (c *capture) gone() (passing, hijacked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passing, c.hijacked
}

// close refuses writes from here on, and returns how many there have been that
// were refused.
func (c *capture) close() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.refused
}

// trailers sets what the handler has set as trailers on the client's writer. It
// must come after the body.
func (c *capture) trailers() {
	for _, name := range listed(c.sent.values("Trailer")) {
		if values, ok := c.header[name]; ok {
			c.w.Header()[name] = values
		}
	}
	for name, values := range c.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			c.w.Header()[name] = values
		}
	}
}

// trailing reports whether the handler has announced or set trailers.
func (c *capture) trailing() bool {
	if len(c.sent.values("Trailer")) > 0 {
		return true
	}
	for name := range c.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// hasBody reports whether a response with that status can have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// replace makes dst hold exactly what src holds.
func replace(dst, src http.Header) {
	clear(dst)
	maps.Copy(dst, src)
}
