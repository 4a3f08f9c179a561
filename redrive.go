package semel

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

// Redrive is an operator's decision to run a failed task or message again, or one
// that is InDoubt under a policy that allows another attempt.
type Redrive struct {
	ID store.ID
	// Delay is the delay of the next attempt. Zero: none.
	Delay time.Duration
	// Actor and Reason are the operator and the reason. Both are required, and kept
	// if the store keeps notes.
	Actor, Reason string
}

// Redrive makes a task or a message Pending for another attempt, resets its errors
// and crashes, and returns the record. The record must have Failed, of an operation
// with [Retry]; or be InDoubt under a policy that allows another attempt: Atomic,
// Keyed, Fenced or AtLeastOnce. The operation must be one that the engine was
// given, unless the record is a dead letter (see [IsDeadLetter]).
func (c *Core) Redrive(ctx context.Context, r Redrive) (store.Record, error) {
	return publicRecord(c.redrive(ctx, r))
}

func (c *Core) redrive(ctx context.Context, r Redrive) (store.Record, error) {
	switch {
	case r.Actor == "":
		return store.Record{}, callerr.Invalid("Actor", "is required")
	case r.Reason == "":
		return store.Record{}, callerr.Invalid("Reason", "is required")
	case r.Delay < 0:
		return store.Record{}, callerr.Invalid("Delay", "is negative: "+r.Delay.String())
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	current, err := c.reader.get(ctx, r.ID)
	if err != nil {
		return current, fmt.Errorf("%w: read the record: %w", callerr.ErrUnavailable, err)
	}
	d := protocol.Next(current, protocol.Event{
		Step: protocol.StepRedrive, Owner: newOwner(), Owned: c.ownsKey(current) || codec.IsDeadLetter(current), Policy: c.redrivePolicy(current), Delay: r.Delay,
		Outcome: c.redriveProgress(current), Expire: c.retention(current),
	})
	if d.Answer != protocol.Apply {
		return current, notRedriven(d.Answer)
	}
	if err := c.withdrawCancel(ctx, current); err != nil {
		return current, err
	}
	defer c.cache.Drop(r.ID)
	answer, err := c.writer.swapNoted(ctx, d.Change, store.Note{ID: r.ID, From: d.Change.If, To: d.Change.To.Token, Actor: r.Actor, Reason: r.Reason})
	switch {
	case err != nil:
		return current, fmt.Errorf("%w: redrive: %w", callerr.ErrUnavailable, err)
	case answer.Busy:
		return current, callerr.ErrInProgress
	case !answer.Applied(d.Change):
		return recordOf(answer), callerr.ErrNotFailed
	}
	now := recordAfter(d.Change, current)
	c.emit(ctx, event.Redriven, now, nil)
	return now, nil
}

// redrivePolicy returns the policy of the record's operation. If the engine was not
// given the operation, a dead letter in doubt shows that its policy allows another
// attempt; AtLeastOnce is the weakest of these policies.
func (c *Core) redrivePolicy(r store.Record) protocol.Policy {
	if op := c.operationNamed(r.Operation); op != nil {
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
func (c *Core) redriveProgress(current store.Record) []byte {
	p, _ := codec.ProgressOf(current)
	p.Redrives++
	return p.Reset(current).Encode(c.caps.MaxOutcome)
}

// Reschedule makes a Pending record due after delay, earlier or later than before,
// and returns the current record.
func (c *Core) Reschedule(ctx context.Context, id store.ID, delay time.Duration) (store.Record, error) {
	return publicRecord(c.reschedule(ctx, id, delay))
}

func (c *Core) reschedule(ctx context.Context, id store.ID, delay time.Duration) (store.Record, error) {
	if delay < 0 {
		return store.Record{}, callerr.Invalid("Delay", "is negative: "+delay.String())
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	current, err := c.reader.get(ctx, id)
	if err != nil {
		return current, fmt.Errorf("%w: read the record: %w", callerr.ErrUnavailable, err)
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
