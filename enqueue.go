package semel

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// EnqueueTx records the call as Pending in the caller's own transaction, with
// its input as JSON, due after delay. It shares the fate of tx. added says that
// this call added it; a record of the same key and the same input is no error
// and adds nothing, of another input it is [ErrMismatch]. A record that an open
// transaction of somebody else holds is [ErrInProgress].
//
// The record is the one that a direct call of the same operation and key runs.
func EnqueueTx[Tx any](ctx context.Context, e *Engine[Tx], tx Tx, c Call, delay time.Duration) (added bool, err error) {
	if err := c.valid(); err != nil {
		return false, err
	}
	if delay < 0 {
		return false, invalid("delay", "is negative: "+delay.String())
	}
	identity := c.identity()
	if identity.Input, err = json.Marshal(c.input); err != nil {
		return false, invalid("Input", "cannot be stored: "+err.Error())
	}
	if err := e.ask(c, policyUnset).mayBeNew(ctx); err != nil {
		return false, err
	}
	create := event{step: stepCreate, owner: newOwner(), same: c.is, identity: identity, delay: delay}
	d := next(store.Record{}, create)
	answers, err := e.swapTx(ctx, tx, []store.Change{d.change})
	if err == nil {
		err = answers[0].Err
	}
	switch {
	case err != nil:
		return false, fmt.Errorf("enqueue %s: %w", c.op.name, err)
	case answers[0].InForce(d.change):
		return true, nil
	case answers[0].Busy:
		return false, &waitError{after: retryAfter(store.Record{})}
	case next(recordOf(answers[0]), create).say == sayMismatch:
		return false, ErrMismatch
	default:
		return false, nil
	}
}
