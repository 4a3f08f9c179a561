package store

import (
	"context"
	"errors"
)

// Batcher is a TxStore that accepts all statements of a transaction at once. B is
// the driver's type of a batch; nil is an empty batch.
type Batcher[B any] interface {
	// AtomicBatch applies the change and then the batch in one transaction, if
	// possible in one round trip. If this call does not apply the change, nothing
	// of the batch is applied: the statement fails inside the database, so that no
	// commit can overtake it.
	//
	// With hold it first takes the exclusive right to the record, as Atomic does,
	// until the transaction ends. If another transaction has the right, the result
	// is Busy at once.
	//
	// The verdict says whether the transaction was committed. Without an error it
	// is Committed, and the change was applied; or it is NotCommitted, and the
	// result says why: Busy, Err, or the current record. An error with NotCommitted
	// is the error of a statement or of a function in the batch, and everything was
	// rolled back. ErrConflict and ErrInterrupted mean the same as for Atomic. With
	// ErrNotStarted nothing was sent.
	//
	// After the batch is sent, AtomicBatch waits for the reply even if ctx ends,
	// within a time limit of the store; after that limit the verdict is Unknown.
	// Statements that could end the transaction are refused before anything is
	// sent.
	AtomicBatch(ctx context.Context, change Change, hold bool, batch B) (SwapResult, Verdict, error)
}

// ErrNotStarted means that a transaction could not begin: nothing was sent.
var ErrNotStarted = errors.New("semel/store: transaction not started")
