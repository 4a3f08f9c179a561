package store

import (
	"context"
	"errors"
)

// Batcher is a TxStore that takes the statements of a transaction all together: B is
// how its driver knows a batch of them, and nil is an empty one.
type Batcher[B any] interface {
	// AtomicBatch makes the change, and then what is in the batch, in one
	// transaction, in one round trip where the database can. When the change is
	// not in force by this very call, nothing of the batch is: it fails the
	// transaction inside the database, so that no commit can overtake it.
	//
	// With hold it first takes, until the transaction ends, the right to the record
	// that Atomic gives; if somebody else has it, the answer is Busy at once.
	//
	// The verdict says whether the transaction committed. Without an error it is
	// Committed, and the change is in force, or NotCommitted, and the answer says
	// why: Busy, Err, or what stands instead. An error with NotCommitted is that of a
	// statement, or of the batch's own functions, and everything is rolled back;
	// ErrConflict and ErrInterrupted mean what they mean for Atomic, and with
	// ErrNotStarted nothing was sent.
	//
	// What was sent is waited for, whatever becomes of ctx, within a bound of the
	// store's own; when that passes the verdict is Unknown. Statements that could
	// end the transaction are refused before anything is sent.
	AtomicBatch(ctx context.Context, change Change, hold bool, batch B) (SwapResult, Verdict, error)
}

// ErrNotStarted says that a transaction could not begin: nothing was sent, and
// nothing is known of what was to be in it.
var ErrNotStarted = errors.New("semel/store: not begun")
