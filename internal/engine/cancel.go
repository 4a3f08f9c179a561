package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// Cancel ends a Pending record, or asks a running attempt to stop. With an actor, the end
// of a Pending record gets a note.
func Cancel(ctx context.Context, c *Core, id store.ID, actor, reason string) (store.Record, error) {
	return publicRecord(cancelKey(ctx, c, id, actor, reason))
}

func cancelKey(ctx context.Context, c *Core, id store.ID, actor, reason string) (store.Record, error) {
	if reason == "" {
		return store.Record{}, callerr.Invalid("Reason", "is required")
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	for range maxRounds {
		begun := clock.Now()
		current, err := c.reader.get(ctx, id)
		if err != nil {
			return current, err
		}
		d := protocol.Next(current, protocol.Event{Step: protocol.StepCancel, Owner: newOwner(), Expire: c.retention(current)})
		switch d.Answer {
		case protocol.Apply:
			if now, done, err := cancelWaiting(ctx, c, current, d.Change, actor, reason); done || err != nil {
				return now, err
			}
		case protocol.Wait:
			return current, requestCancel(ctx, c, current, begun, reason)
		default:
			return current, nil
		}
	}
	return store.Record{}, &callerr.WaitError{After: time.Second}
}

// cancelWaiting ends a Pending record. It returns false if the record has changed
// meanwhile.
func cancelWaiting(ctx context.Context, c *Core, current store.Record, change store.Change, actor, reason string) (store.Record, bool, error) {
	change.To.Outcome = cancelledOutcome(c, current, change.To.State, reason)
	write := func() (store.SwapResult, error) { return c.writer.swap(ctx, &change, swapTries) }
	if actor != "" {
		note := store.Note{ID: current.ID, From: change.If, To: change.To.Token, Actor: actor, Reason: reason}
		write = func() (store.SwapResult, error) { return c.writer.swapNoted(ctx, change, note) }
	}
	answer, err := write()
	switch {
	case err != nil:
		return current, false, fmt.Errorf("%w: cancel: %w", callerr.ErrUnavailable, err)
	case answer.Busy:
		return current, false, &callerr.WaitError{After: protocol.RetryAfter(current)}
	case !answer.Applied(change):
		return current, false, nil
	}
	now := recordAfter(change, current)
	if now.State == store.Failed {
		c.emit(ctx, event.Cancelled, now, nil)
	} else {
		c.emit(ctx, event.InDoubt, now, callerr.ErrCancelled)
	}
	return now, true, nil
}

// cancelledOutcome returns the outcome of a cancelled record: the failure, or the progress
// of a record in doubt.
func cancelledOutcome(c *Core, current store.Record, to store.State, reason string) []byte {
	p, _ := codec.ProgressOf(current)
	if to == store.Failed {
		return codec.EncodeFailure(p.Failure(codec.CodeCancelled, reason), c.caps.MaxOutcome)
	}
	p = p.Add(current.Attempt, codec.TryInterrupted, &callerr.CancelledError{Reason: reason})
	p.Retention = c.retention(current)
	return p.Encode(c.caps.MaxOutcome)
}

// requestCancel writes a request for the record's leader. The record was read after
// begun.
func requestCancel(ctx context.Context, c *Core, current store.Record, begun time.Time, reason string) error {
	asking := cancelRecord(current.ID)
	asking.Outcome = codec.EncodeFailure(&callerr.Failure{Code: codec.CodeCancelled, Message: reason}, c.caps.MaxOutcome)
	e := protocol.Event{
		Step: protocol.StepCreate, Owner: newOwner(), Identity: asking, Delay: c.retention(current), Expire: c.retention(current),
	}
	d, now, err := c.writer.settle(ctx, store.Record{}, e)
	if err == nil && d.Answer == protocol.Replay {
		e.Outcome = asking.Outcome
		again := e
		again.Step, again.Owned = protocol.StepRedrive, true
		switch {
		case protocol.Next(now, again).Answer == protocol.Apply: // the request was withdrawn
			_, _, err = c.writer.settle(ctx, now, again)
		case now.Since > current.Age+clock.Since(begun):
			// The request is older than the record, so it was made for an earlier
			// record of the same key.
			e.Step = protocol.StepReschedule
			_, _, err = c.writer.settle(ctx, now, e)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: request cancellation: %w", callerr.ErrUnavailable, err)
	}
	return nil
}
