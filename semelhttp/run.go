package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

var (
	errNothingWritten = errors.New("semelhttp: the function given to InTx has written no response; write it there, status included, because it commits with the transaction")
	// errRolledBack is context.Canceled too, so that it is never stored.
	errRolledBack = fmt.Errorf("semelhttp: the handler reports success after its transaction was rolled back: %w", context.Canceled)
)

// run is one run of the handler. A conflict in the database causes another run, which
// shares nothing with this one.
type run struct {
	x       *exchange
	capture capture
	request *http.Request // as the handler received it
	body    bodyReader
}

// newRun begins a run of the handler.
func (x *exchange) newRun() *run {
	if x.run != nil {
		x.restore()
	} else if h := x.w.Header(); len(h) > 0 {
		x.before = h.Clone()
	}
	// In HTTP/1.0 the response ends with its connection, so a part of it would be taken
	// for the whole.
	whole := x.atomic || !x.r.ProtoAtLeast(1, 1)
	own := &run{x: x, capture: capture{w: x.w, limit: x.MaxResponse, sealed: whole, streams: x.streams}}
	own.body.Reset(x.in.body)
	x.run = own
	return own
}

// handle runs x's handler, and returns what its response means for the engine: a
// result, or an error for its status.
func (own *run) handle(ctx context.Context) (any, error) {
	x, returned := own.x, false
	own.request = setBody(x.r.Clone(ctx), &own.body) // the handler may change it
	defer func() {
		if !returned {
			own.end()
		}
		if own.request.MultipartForm != nil { // the server removes only the files of its own request
			_ = own.request.MultipartForm.RemoveAll()
		}
	}()
	x.next.ServeHTTP(&own.capture, own.request)
	late := own.end()
	returned = true
	switch {
	case x.committed && late > 0:
		return nil, ErrResponseClosed // the engine informs its Observer
	case x.committed:
		return nil, nil // InTx has informed the engine
	}
	v, err := x.outcome()
	if x.undone && err == nil && x.class() == classSuccess {
		return nil, errRolledBack
	}
	return v, err
}

// end closes the response of a handler that has returned, also for a transaction
// that the handler left behind. It returns the number of refused writes.
func (own *run) end() (late int) {
	c := &own.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.over.Store(true)
	return int(c.refused)
}

// Encode returns to the engine, inside the transaction of InTx, what the handler
// has written. The handler's later writes are refused.
func (own *run) Encode(any) (any, error) {
	c, x := &own.capture, own.x
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Load() { // a goroutine that the handler left behind ends its transaction
		return nil, ErrResponseClosed
	}
	if !c.started() {
		return nil, errNothingWritten
	}
	c.closed = true
	answer, storable := c.result()
	x.own, x.committed, x.undone = answer, true, false
	return x.result(storable), nil
}

// Undone is called if the transaction did not commit: what was written for it is
// dropped, and the handler responds again, or runs again and reads its request
// again. After the handler has returned, its response stays.
func (own *run) Undone() {
	c, x := &own.capture, own.x
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Load() {
		return
	}
	x.own, x.committed, x.undone = Response{}, false, true
	c.reset()
	if body, ok := own.request.Body.(*bodyReader); ok {
		_, _ = body.Seek(0, io.SeekStart) // cannot fail
	}
}

// Claims reports whether the handler's response says that the operation took place.
// It is called after the handler has returned.
func (own *run) Claims() bool {
	c := &own.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	return classOf(max(int(c.status), http.StatusOK)) == classSuccess
}
