package semel

import (
	"context"
	"time"

	"github.com/semelgo/semel/internal/engine"
)

// EnqueueOptions say when an enqueued call runs. The zero value is: at once, with
// the default priority.
type EnqueueOptions struct {
	// Delay is the least time before the call runs, by the store's clock.
	Delay time.Duration
	// At is when the call is due, by the engine's clock; a time in the past means
	// at once. It cannot be combined with Delay.
	At time.Time
	// Priority orders the calls that are due: store.MinPriority to
	// store.MaxPriority. A higher priority runs first.
	Priority int
}

// Enqueue is [EnqueueTx] in a transaction of its own. After [ErrUnavailable] the
// record may exist all the same: a retry is safe and adds it once. Within a
// transaction of a store that lets one transaction write at a time, such as SQLite,
// it is ErrInvalid.
func Enqueue(ctx context.Context, e Runner, c Call, o EnqueueOptions) (added bool, err error) {
	return engine.Enqueue(ctx, e, c, engine.EnqueueOptions(o))
}

// EnqueueTx writes the call as a Pending record in the caller's own transaction,
// with its input as JSON. It commits or rolls back with tx. added means that this
// call added the record. If the key has a record already, a call with the same
// input is no error and adds nothing; another input is [ErrMismatch]. A record that
// another open transaction holds is [ErrInProgress].
//
// A direct call of the same operation and key runs the same record.
//
// The operation must have a [Retry] without Redelivered, because workers run no
// other operations; otherwise the error is a *FieldError.
//
// If the store does not answer, the error is [ErrUnavailable] and contains the
// driver's error; tx then decides.
//
// An engine that is being closed still accepts EnqueueTx, because a running
// operation may enqueue.
func EnqueueTx[Tx any](ctx context.Context, e *Engine[Tx], tx Tx, c Call, o EnqueueOptions) (added bool, err error) {
	return engine.EnqueueTx(ctx, e, tx, c, engine.EnqueueOptions(o))
}
