package semelhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	*settings

	w http.ResponseWriter

	mu      sync.Mutex  // guards the fields up to closed
	before  http.Header // the client's headers before the handler ran; nil: there were none
	after   http.Header // trailers that the handler has set
	own     Response    // with the headers at the time of the status, and the part of the body that is held back
	room    [512]byte   // for the body of a short response
	refused int         // number of writes after the outcome
	passing bool        // the response is being sent to the client
	closed  bool

	http10 bool        // the client speaks HTTP/1.0: it would take a part of a response for the whole
	sealed bool        // nothing may be sent before the outcome is stored
	over   atomic.Bool // the handler has returned and must not use w any more
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
	case c.own.Status != 0:
	case status < 200 && status != http.StatusSwitchingProtocols:
		c.w.WriteHeader(status)
	default:
		c.begin(status)
	}
}

func (c *capture) begin(status int) {
	c.own.Status = status
	c.own.Header = canonicalHeader(c.w.Header())
	delete(c.own.Header, HeaderReplayed)
}

// Write holds p back, or sends it if the response cannot be held back.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		c.refused++
		return 0, ErrResponseClosed
	}
	if c.own.Status == 0 {
		c.begin(http.StatusOK)
	}
	if !hasBody(c.own.Status) {
		return 0, http.ErrBodyNotAllowed
	}
	if !c.sealed && int64(len(c.own.Body)+len(p)) > c.MaxResponse {
		c.pass()
	}
	if c.passing {
		return c.w.Write(p)
	}
	if c.own.Body == nil {
		c.own.Body = c.room[:0]
	}
	c.own.Body = append(c.own.Body, p...)
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
	if !whole {
		c.after = trailers(c.own.Header, h) // trailers that the handler has set already
	}
	clear(h)
	maps.Copy(h, c.own.Header)
	delete(h, contentLength)
	if trailing := len(c.own.Header["Trailer"])+len(c.after) > 0; whole && (!trailing || c.http10) {
		setLength(h, c.own.Status, c.own.Body, trailing)
	}
	c.w.WriteHeader(c.own.Status)
	_, _ = c.w.Write(c.own.Body) // a client that hung up retries; the handler's next write returns the same error
	maps.Copy(h, c.after)
}

// end closes the response of a handler that has returned or panicked, also for a
// transaction that the handler left behind, and gives the client's headers their values
// before the handler ran. It returns the number of refused writes.
func (c *capture) end() (late int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over.Load() {
		if c.own.Status == 0 {
			c.begin(http.StatusOK)
		}
		if h := c.w.Header(); !c.passing {
			c.after = trailers(c.own.Header, h)
			clear(h)
			maps.Copy(h, c.before)
		}
	}
	c.closed = true
	c.over.Store(true)
	return c.refused
}

// reset drops what was written, so that the handler can respond again. What was
// sent to the client cannot be taken back. mu is locked.
func (c *capture) reset() {
	c.closed, c.refused = false, 0
	if !c.passing {
		c.own = Response{endpoint: c.own.endpoint}
	}
}
