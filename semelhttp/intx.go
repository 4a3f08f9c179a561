package semelhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/semelgo/semel"
)

var (
	errNothingWritten = errors.New("semelhttp: the function given to InTx has written no response; write it there, status included, because it commits with the transaction")
	// errRolledBack is context.Canceled too, so that it is never stored.
	errRolledBack = fmt.Errorf("semelhttp: the handler reports success after its transaction was rolled back: %w", context.Canceled)
)

// Encode returns to the engine, inside the transaction of InTx, what the handler
// has written. The handler's later writes are refused.
func (own *run) Encode(any) (any, error) {
	c := &own.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	x := own.of
	if x == nil {
		return nil, ErrResponseClosed
	}
	if !c.started() {
		return nil, errNothingWritten
	}
	c.closed = true
	answer, storable := c.result()
	x.own, x.committed, x.undone = answer, true, false
	v := x.resultValue(storable)
	if _, ok := v.(*exchange); ok { // a goroutine that was left behind may end its transaction after the exchange is reused
		v = semel.Raw(x.AppendRaw(nil))
	}
	return v, nil
}

// Undone is called if the transaction did not commit: what was written for it is
// dropped, and the handler responds again, or runs again and reads its request
// again. After the handler has returned, its response stays.
func (own *run) Undone() {
	own.capture.mu.Lock()
	defer own.capture.mu.Unlock()
	x := own.of
	if x == nil {
		return
	}
	x.own, x.committed, x.undone = responseData{}, false, true
	own.capture.reset()
	rewindBody(x.handed)
}

// Claims reports whether the handler's response says that the operation took place.
// It is called after the handler has returned.
func (own *run) Claims() bool {
	own.capture.mu.Lock()
	defer own.capture.mu.Unlock()
	return classOf(max(int(own.capture.status), http.StatusOK)) == classSuccess
}

// afterRollback returns the outcome of a handler whose transaction was rolled back.
// The handler may have refused; it has not succeeded, whatever its response says.
func (x *exchange) afterRollback() (any, error) {
	v, err := x.outcome()
	if err == nil && x.class() == classSuccess {
		return nil, errRolledBack
	}
	return v, err
}
