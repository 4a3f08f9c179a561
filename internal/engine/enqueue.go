package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// EnqueueOptions say when an enqueued call runs.
type EnqueueOptions struct {
	Delay    time.Duration
	At       time.Time
	Priority int
}

// EnqueueTx writes the call as a Pending record in the caller's own transaction,
// with its input as JSON.
func EnqueueTx[Tx any](ctx context.Context, e *Engine[Tx], tx Tx, c Call, o EnqueueOptions) (added bool, err error) {
	added, err = enqueueTx(ctx, e.Core, tx, &c, o)
	return added, callerr.Seal(err)
}

func enqueueTx(ctx context.Context, core *Core, tx any, c *Call, o EnqueueOptions) (added bool, err error) {
	var q enqueueCall
	if err := core.prepareEnqueue(ctx, &q, c, o); err != nil {
		return false, err
	}
	answers, err := core.swapTx(ctx, tx, []store.Change{q.change})
	if err != nil {
		return false, fmt.Errorf("%w: enqueue %s: %w", callerr.ErrUnavailable, c.op.name, err)
	}
	return q.added(answers[0])
}

// Enqueue is [EnqueueTx] in a transaction of its own.
func Enqueue(ctx context.Context, e Runner, c Call, o EnqueueOptions) (added bool, err error) {
	added, err = enqueue(ctx, e.core(), &c, o)
	return added, callerr.Seal(err)
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
	answer, err := core.writer.swapBatched(ctx, &q.change, swapTries)
	switch {
	case errors.Is(err, store.ErrNoPartition):
		return false, q.c.noPartitionError(q.call, err)
	case errors.Is(err, callerr.ErrRefused):
		return false, fmt.Errorf("enqueue %s: %w", c.op.name, err)
	case err != nil:
		return false, fmt.Errorf("%w: enqueue %s: %w", callerr.ErrUnavailable, c.op.name, err)
	}
	return q.added(answer)
}

// enqueueCall is a call of Enqueue or EnqueueTx.
type enqueueCall struct {
	c      *Core
	call   *Call
	event  protocol.Event
	change store.Change
}

// prepareEnqueue prepares the change that creates the record.
func (c *Core) prepareEnqueue(ctx context.Context, q *enqueueCall, call *Call, o EnqueueOptions) error {
	if err := call.valid(); err != nil {
		return err
	}
	if err := c.checkOperation(call.op); err != nil {
		return err
	}
	switch retry := call.op.retry; {
	case retry == nil:
		return callerr.Invalid("Retry", "is not set for "+call.op.name+": no worker runs enqueued calls")
	case retry.Redelivered:
		return callerr.Invalid("Redelivered", "is set for "+call.op.name+": no worker runs enqueued calls")
	}
	delay, err := o.delay()
	if err != nil {
		return err
	}
	q.c, q.call = c, call
	q.event = protocol.Event{Step: protocol.StepCreate, Owner: newOwner(), Request: call, Identity: call.identity(), Delay: delay}
	identity := &q.event.Identity
	identity.Priority = int8(o.Priority)
	trace := InjectTrace(ctx, c)
	if trace != nil || c.options.timesOf(call.op, call.id).Retention != defaultRetention {
		identity.Outcome = c.progress(codec.Progress{Trace: trace}, call.op, call.id)
	}
	if err := c.checkKeyAge(ctx, call); err != nil {
		return err
	}
	var d protocol.Decision
	d.Decide(&store.Record{}, &q.event)
	q.change = d.Change
	return nil
}

// delay returns the delay of the call.
func (o EnqueueOptions) delay() (time.Duration, error) {
	switch {
	case o.Delay < 0:
		return 0, callerr.Invalid("Delay", "is negative: "+o.Delay.String())
	case o.Delay > 0 && !o.At.IsZero():
		return 0, callerr.Invalid("At", "is given together with Delay")
	case o.Priority < store.MinPriority || o.Priority > store.MaxPriority:
		return 0, callerr.Invalid("Priority", fmt.Sprintf("must be %d to %d", store.MinPriority, store.MaxPriority))
	case o.At.IsZero():
		return o.Delay, nil
	default:
		return max(clock.Until(o.At), 0), nil
	}
}

// added returns the answer of the store's result.
func (q *enqueueCall) added(answer store.SwapResult) (bool, error) {
	switch {
	case errors.Is(answer.Err, store.ErrNoPartition):
		return false, q.c.noPartitionError(q.call, answer.Err)
	case answer.Err != nil:
		return false, fmt.Errorf("enqueue %s: %w", q.call.op.name, answer.Err)
	case answer.Applied(q.change):
		return true, nil
	case answer.Busy:
		return false, &callerr.WaitError{After: protocol.RetryAfter(store.Record{})}
	}
	switch protocol.Next(recordOf(answer), q.event).Answer {
	case protocol.Mismatch:
		return false, callerr.ErrMismatch
	case protocol.Newer:
		return false, errNewer
	default:
		return false, nil
	}
}
