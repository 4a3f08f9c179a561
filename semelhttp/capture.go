package semelhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrResponseClosed is returned by writes after the outcome was decided: behind
// [Middleware] after the function of semel.InTx has returned, and everywhere after
// the handler has returned. Such writes change nothing.
var ErrResponseClosed = errors.New("semelhttp: written after the outcome")

// capture is the ResponseWriter of a protected handler. It holds the response back
// until the outcome is stored. If that is not possible, it passes the response on
// and records that the response cannot be stored.
//
// Unlike net/http's writer it has a lock, because a goroutine that the handler left
// behind may still write while the outcome is being decided.
type capture struct {
	w     http.ResponseWriter
	limit int64

	mu       sync.Mutex  // guards the fields up to closed
	sent     http.Header // at the time when the status was written
	body     []byte      // the part that is held back
	room     [512]byte   // for the body of a short response
	status   int32       // 0: nothing was written
	refused  int32       // number of writes after the outcome
	passing  bool        // the response is being sent to the client
	hijacked bool
	closed   bool

	http10  bool        // the client speaks HTTP/1.0
	sealed  bool        // nothing may be sent before the outcome is stored
	streams []string    // media types of responses that a flush sends
	over    atomic.Bool // the handler has returned and must not use w any more
}

// Header returns the client's headers. The response has the headers at the time
// when the status was written. Like net/http's, the map is not guarded. A goroutine
// that the handler left behind gets an empty map, because the writer may belong to
// another client by then.
func (c *capture) Header() http.Header {
	if c.over.Load() {
		return make(http.Header)
	}
	return c.w.Header()
}

// WriteHeader sets the status, with the current headers. Informational responses
// are sent at once: they are not part of the outcome.
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
	c.sent = c.w.Header().Clone()
	maps.DeleteFunc(c.sent, func(name string, _ []string) bool { return strings.EqualFold(name, HeaderReplayed) })
}

// Write holds p back, or sends it if the response cannot be held back.
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
	if !c.sealed && int64(len(c.body)+len(p)) > c.limit {
		c.pass()
	}
	if c.passing {
		return c.w.Write(p)
	}
	if c.body == nil {
		c.body = c.room[:0]
	}
	c.body = append(c.body, p...)
	return len(p), nil
}

// pass sends the response from here on. Its length is not announced, so that the
// client sees its end only after the handler has returned and the outcome is
// stored; until then the client knows that it has a part.
func (c *capture) pass() {
	if !c.passing {
		c.passing = true
		c.send(false)
	}
}

// send sends what was written. whole means that nothing follows. In HTTP/1.0 the client
// cannot receive trailers.
func (c *capture) send(whole bool) {
	h := c.w.Header()
	after := trailers(c.sent, h) // trailers that were set already
	replaceHeader(h, c.sent)
	delete(h, contentLength)
	if whole && (after == nil || c.http10) {
		setLength(h, int(c.status), c.body, after != nil)
	}
	c.w.WriteHeader(int(c.status))
	_, _ = c.w.Write(c.body) // a client that hung up retries; the handler's next write returns the same error
	maps.Copy(h, after)
}

// reset drops what was written, so that the handler can respond again. What was
// sent to the client cannot be taken back. mu is locked.
func (c *capture) reset() {
	c.closed, c.refused = false, 0
	if c.passing || c.hijacked {
		return
	}
	c.status, c.sent, c.body = 0, nil, nil
}

// started reports whether the handler has written a part of its response. mu is
// locked, or the capture is closed.
func (c *capture) started() bool { return c.status != 0 || c.hijacked }

// gone reports whether the response, or a part of it, was sent to the client. mu is
// locked, or the capture is closed.
func (c *capture) gone() bool { return c.passing || c.hijacked }
