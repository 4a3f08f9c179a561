package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// EnqueueOptions say when a call that is enqueued is to be run. The zero value:
// at once, among the ordinary ones.
type EnqueueOptions struct {
	// Delay is how long it waits at least, by the store's clock.
	Delay time.Duration
	// At is when it is due, by the engine's clock; a time that is over means at
	// once. Not together with Delay.
	At time.Time
	// Priority says who goes first of those that are due: store.MinPriority to
	// store.MaxPriority. Higher goes first.
	Priority int
}

// EnqueueTx records the call as Pending in the caller's own transaction, with its
// input as JSON. It shares the fate of tx. added says that this call added it; a
// record of the same key and the same input is no error and adds nothing, of
// another input it is [ErrMismatch]. A record that an open transaction of
// somebody else holds is [ErrInProgress].
//
// The record is the one that a direct call of the same operation and key runs.
//
// The operation must have a [Retry] without Redelivered, because no worker runs the calls
// of any other; it is a *FieldError.
//
// When the store gives no answer the error is [ErrUnavailable], with the driver's error
// in it, and tx decides.
//
// It is not refused by an engine that is being closed: what runs until the end, and
// is waited for, may still leave something to do.
func EnqueueTx[Tx any](ctx context.Context, e *Engine[Tx], tx Tx, c Call, o EnqueueOptions) (added bool, err error) {
	added, err = enqueueTx(ctx, e.Core, tx, &c, o)
	return added, seal(err)
}

func enqueueTx(ctx context.Context, core *Core, tx any, c *Call, o EnqueueOptions) (added bool, err error) {
	var q enqueueCall
	if err := core.prepareEnqueue(ctx, &q, c, o); err != nil {
		return false, err
	}
	answers, err := core.swapTx(ctx, tx, []store.Change{q.change})
	if err != nil {
		return false, fmt.Errorf("%w: enqueue %s: %w", ErrUnavailable, c.op.name, err)
	}
	return q.added(answers[0])
}

// Enqueue is [EnqueueTx] in a transaction of its own. After [ErrUnavailable] it may
// be there all the same: to ask again is safe, and adds it once. Within a transaction of a
// store that lets one transaction write at a time, as SQLite does, it is ErrInvalid.
func Enqueue(ctx context.Context, e Runner, c Call, o EnqueueOptions) (added bool, err error) {
	added, err = enqueue(ctx, e.core(), &c, o)
	return added, seal(err)
}

func enqueue(ctx context.Context, core *Core, c *Call, o EnqueueOptions) (added bool, err error) {
	if err := core.enter(); err != nil {
		return false, err
	}
	defer core.leave()
	if err := core.notWithinTx(ctx, false); err != nil {
		return false, err
	}
	var q enqueueCall
	if err := core.prepareEnqueue(ctx, &q, c, o); err != nil {
		return false, err
	}
	answer, err := core.swapBatched(ctx, &q.change, askTries)
	switch {
	case errors.Is(err, store.ErrNoPartition):
		return false, q.c.noPartitionError(q.call, err)
	case errors.Is(err, errRefused):
		return false, fmt.Errorf("enqueue %s: %w", c.op.name, err)
	case err != nil:
		return false, fmt.Errorf("%w: enqueue %s: %w", ErrUnavailable, c.op.name, err)
	}
	return q.added(answer)
}

// queueing is a call on its way to the queue.
type enqueueCall struct {
	c      *Core
	call   *Call
	event  event
	change store.Change
}

// queueing makes the change that puts the call into the queue.
func (c *Core) prepareEnqueue(ctx context.Context, q *enqueueCall, call *Call, o EnqueueOptions) error {
	if err := call.valid(); err != nil {
		return err
	}
	if err := c.checkDefinition(call.op); err != nil {
		return err
	}
	if err := c.options.outlived(call.op); err != nil {
		return err
	}
	switch retry := call.op.retry; {
	case retry == nil:
		return invalid("Retry", "is not set for "+call.op.name+": no worker runs what is enqueued")
	case retry.Redelivered:
		return invalid("Redelivered", "is set for "+call.op.name+": no worker runs what is enqueued")
	}
	delay, err := o.delay()
	if err != nil {
		return err
	}
	q.c, q.call = c, call
	q.event = event{step: stepCreate, owner: newOwner(), request: call, identity: call.identity(), delay: delay}
	identity := &q.event.identity
	identity.Priority = int8(o.Priority)
	if c.options.timesOf(call.op, call.id).retention != defaultRetention {
		identity.Outcome = c.progress(Progress{}, call.op, call.id)
	}
	if err := c.checkKeyAge(ctx, call); err != nil {
		return err
	}
	var d decision
	d.decide(&store.Record{}, &q.event)
	q.change = d.change
	return nil
}

// delay is how long the call waits.
func (o EnqueueOptions) delay() (time.Duration, error) {
	switch {
	case o.Delay < 0:
		return 0, invalid("Delay", "is negative: "+o.Delay.String())
	case o.Delay > 0 && !o.At.IsZero():
		return 0, invalid("At", "is given together with Delay")
	case o.Priority < store.MinPriority || o.Priority > store.MaxPriority:
		return 0, invalid("Priority", fmt.Sprintf("must be %d to %d", store.MinPriority, store.MaxPriority))
	case o.At.IsZero():
		return o.Delay, nil
	default:
		return max(until(o.At), 0), nil
	}
}

// added tells what the store's answer says of it.
func (q *enqueueCall) added(answer store.SwapResult) (bool, error) {
	switch {
	case errors.Is(answer.Err, store.ErrNoPartition):
		return false, q.c.noPartitionError(q.call, answer.Err)
	case answer.Err != nil:
		return false, fmt.Errorf("enqueue %s: %w", q.call.op.name, answer.Err)
	case answer.Applied(q.change):
		return true, nil
	case answer.Busy:
		return false, &waitError{after: retryAfter(store.Record{})}
	}
	switch next(recordOf(answer), q.event).answer {
	case answerMismatch:
		return false, ErrMismatch
	case answerNewer:
		return false, errNewer
	default:
		return false, nil
	}
}
