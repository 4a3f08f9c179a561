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
	// errRolledBack is context.Canceled too, so that it is never kept.
	errRolledBack = fmt.Errorf("semelhttp: the handler reports success after its transaction was rolled back: %w", context.Canceled)
)

// Encode gives the engine, inside the transaction of InTx, what the handler has
// written so far. From here on it writes no more.
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
	v := x.stored(storable)
	if _, ok := v.(*exchange); ok { // which is others' by the time that the transaction ends, if that is left behind
		v = semel.Raw(x.AppendRaw(nil))
	}
	return v, nil
}

// Undone is told that the transaction did not commit: what was written for it is
// none, and the handler answers anew, or is run again and reads its request
// anew. Once it has returned its answer is on its way, and stays.
func (own *run) Undone() {
	own.capture.mu.Lock()
	defer own.capture.mu.Unlock()
	x := own.of
	if x == nil {
		return
	}
	x.own, x.committed, x.undone = answered{}, false, true
	own.capture.reset()
	reread(x.handed)
}

// Claims reports whether the handler has answered that the operation took place. It is
// called after the handler has returned.
func (own *run) Claims() bool {
	own.capture.mu.Lock()
	defer own.capture.mu.Unlock()
	return classOf(max(int(own.capture.status), http.StatusOK)) == classDone
}

// afterRollback is the outcome of a handler whose transaction was rolled back.
// It may have refused; it has not succeeded, whatever it has written, and be it
// nothing.
func (x *exchange) afterRollback() (any, error) {
	v, err := x.outcome()
	if err == nil && x.class() == classDone {
		return nil, errRolledBack
	}
	return v, err
}
