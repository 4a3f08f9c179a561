package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// RedriveRequest is an operator's decision to run a failed task or message again, or one
// that is InDoubt under a policy that allows another attempt.
type RedriveRequest struct {
	ID            store.ID
	Delay         time.Duration
	Actor, Reason string
}

// Redrive makes a task or a message Pending for another attempt, resets its errors
// and crashes, and returns the record.
func Redrive(ctx context.Context, c *Core, r RedriveRequest) (store.Record, error) {
	return publicRecord(redriveRecord(ctx, c, r))
}

func redriveRecord(ctx context.Context, c *Core, r RedriveRequest) (store.Record, error) {
	if r.Delay < 0 {
		return store.Record{}, callerr.Invalid("Delay", "is negative: "+r.Delay.String())
	}
	current, err := c.readForOperator(ctx, r.ID, r.Actor, r.Reason)
	if err != nil {
		return current, err
	}
	d := protocol.Next(current, protocol.Event{
		Step: protocol.StepRedrive, Owner: newOwner(), Owned: c.ownsKey(current) || codec.IsDeadLetter(current), Policy: redrivePolicy(c, current), Delay: r.Delay,
		Outcome: redriveProgress(c, current), Expire: c.retention(current),
	})
	if d.Answer != protocol.Apply {
		return current, notRedriven(d.Answer)
	}
	if err := withdrawCancel(ctx, c, current); err != nil {
		return current, err
	}
	defer c.cache.Drop(r.ID)
	now, err := c.writeForOperator(ctx, current, d, r.Actor, r.Reason, callerr.ErrNotFailed)
	if err == nil {
		c.emit(ctx, event.Redriven, now, nil)
	}
	return now, err
}

// redrivePolicy returns the policy of the record's operation. If the engine was not
// given the operation, a dead letter in doubt shows that its policy allows another
// attempt; AtLeastOnce is the weakest of these policies.
func redrivePolicy(c *Core, r store.Record) protocol.Policy {
	if op := c.operations[r.Operation]; op != nil {
		return op.policy.kind
	}
	if codec.IsDeadLetter(r) {
		return protocol.AtLeastOnce
	}
	return protocol.Unset
}

// notRedriven returns the error of a record that cannot be redriven.
func notRedriven(why protocol.Answer) error {
	switch why {
	case protocol.NotOwned:
		return callerr.ErrNotOwned
	case protocol.InDoubt:
		return fmt.Errorf("%w: the record is InDoubt, and no policy is known that allows another attempt; resolve it", callerr.ErrNotFailed)
	default:
		return callerr.ErrNotFailed
	}
}

// redriveProgress returns the progress of a redriven record.
func redriveProgress(c *Core, current store.Record) []byte {
	p, _ := codec.ProgressOf(current)
	p.Redrives++
	return p.Reset(current).Encode(c.caps.MaxOutcome)
}

// Reschedule makes a Pending record due after delay, earlier or later than before,
// and returns the current record.
func Reschedule(ctx context.Context, c *Core, id store.ID, delay time.Duration) (store.Record, error) {
	return publicRecord(rescheduleRecord(ctx, c, id, delay))
}

func rescheduleRecord(ctx context.Context, c *Core, id store.ID, delay time.Duration) (store.Record, error) {
	if delay < 0 {
		return store.Record{}, callerr.Invalid("Delay", "is negative: "+delay.String())
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	current, err := c.reader.get(ctx, id)
	if err != nil {
		return current, err
	}
	d, now, err := c.writer.settle(ctx, current, protocol.Event{
		Step: protocol.StepReschedule, Owner: newOwner(), Delay: delay, Expire: c.retention(current),
	})
	switch {
	case errors.Is(err, callerr.ErrBusy):
		return current, &callerr.WaitError{After: protocol.RetryAfter(current)}
	case err != nil:
		return current, fmt.Errorf("%w: reschedule: %w", callerr.ErrUnavailable, err)
	case d.Answer != protocol.Apply:
		return now, callerr.ErrNotPending
	}
	return now, nil
}
