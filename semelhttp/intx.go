package semelhttp

import (
	"context"
	"errors"
	"fmt"
)

var (
	errNothingWritten = errors.New("semelhttp: the function given to InTx has written no response; write it there, status included, because it commits with the transaction")
	// errRolledBack is context.Canceled too, so that it is never kept.
	errRolledBack = fmt.Errorf("semelhttp: the handler reports success after its transaction was rolled back: %w", context.Canceled)
)

// Encode gives the engine, inside the transaction of InTx, what the handler has
// written so far. From here on it writes no more.
func (x *exchange) Encode(any) (any, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return nil, ErrResponseClosed
	}
	if !x.capture.started() {
		return nil, errNothingWritten
	}
	x.capture.close()
	own, storable := x.capture.result()
	x.own, x.committed, x.undone = own, true, false
	return x.stored(storable), nil
}

// Undone is told that the transaction did not commit: what was written for it is
// none, and the handler answers anew, or is run again and reads its request
// anew. Once it has returned its answer is on its way, and stays.
func (x *exchange) Undone() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return
	}
	x.own, x.committed, x.undone = answered{}, false, true
	x.capture.reset()
	reread(x.handed)
}

// afterRollback is the outcome of a handler whose transaction was rolled back.
// It may have refused; it has not succeeded, whatever it has written, and be it
// nothing.
func (x *exchange) afterRollback() (any, error) {
	v, err := x.outcome()
	if err == nil && classOf(x.own.status) == classDone {
		return nil, errRolledBack
	}
	return v, err
}
