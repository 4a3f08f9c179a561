package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// cancelOperation is the operation of records that request the cancellation of a
// running attempt. Only the leader may write the record of a running attempt, so a
// request is a record of its own. The leader reads it with each heartbeat.
const cancelOperation = "semel.cancel"

// Cancel ends a Pending record, or asks a running attempt to stop. It returns the
// current record.
//
// A Pending record becomes Failed, with the code "cancelled" and the reason; if an
// earlier attempt may have had an effect, it becomes InDoubt. If an attempt is
// running, Cancel asks its worker to cancel the function's context with the cause
// [ErrCancelled]. The worker sees the request with its next [Core.RenewLeases]; if
// it ends before that, the next worker sees it. The function's error then decides:
// an error with proof that nothing was committed makes the record Failed, any other
// error InDoubt, and a success stays one. Attempts of direct calls do not see the
// request. A record that is final, InDoubt or absent does not change.
func (c *Core) Cancel(ctx context.Context, id store.ID, reason string) (store.Record, error) {
	return publicRecord(c.cancel(ctx, id, reason))
}

func (c *Core) cancel(ctx context.Context, id store.ID, reason string) (store.Record, error) {
	if reason == "" {
		return store.Record{}, invalid("Reason", "is required")
	}
	if err := c.notWithinTx(ctx, false); err != nil {
		return store.Record{}, err
	}
	for range maxRounds {
		begun := c.now()
		current, err := c.get(ctx, id)
		if err != nil {
			return current, fmt.Errorf("%w: read the record: %w", ErrUnavailable, err)
		}
		switch current.State {
		case store.Pending:
			now, done, err := c.cancelWaiting(ctx, current, reason)
			if done || err != nil {
				return now, err
			}
		case store.InProgress:
			return current, c.requestCancel(ctx, current, begun, reason)
		case store.Absent, store.InDoubt, store.Succeeded, store.Failed:
			return current, nil
		}
	}
	return store.Record{}, &waitError{after: time.Second}
}

// cancelWaiting ends a Pending record. It returns false if the record has changed
// meanwhile.
func (c *Core) cancelWaiting(ctx context.Context, current store.Record, reason string) (store.Record, bool, error) {
	p, _ := ProgressOf(current)
	d := protocol.Next(current, protocol.Event{
		Step: protocol.StepCancel, Owner: newOwner(), Expire: c.retention(current),
		Outcome: encodeFailure(p.failure(codeCancelled, reason), c.caps.MaxOutcome),
	})
	if d.Answer != protocol.Apply {
		return c.cancelTainted(ctx, current, reason)
	}
	answer, err := c.swap(ctx, &d.Change, askTries)
	switch {
	case err != nil:
		return current, false, fmt.Errorf("%w: cancel: %w", ErrUnavailable, err)
	case answer.Busy:
		return current, false, &waitError{after: protocol.RetryAfter(current)}
	case !answer.Applied(d.Change):
		return current, false, nil
	}
	now := recordAfter(d.Change, current)
	c.emit(ctx, EventCancelled, now, nil)
	return now, true, nil
}

// cancelTainted moves a Pending record to InDoubt, because the effect of an earlier
// attempt is unknown. It claims the record first, so that no other attempt runs.
func (c *Core) cancelTainted(ctx context.Context, current store.Record, reason string) (store.Record, bool, error) {
	if current.Due > 0 {
		now, err := c.reschedule(ctx, current.ID, 0)
		if errors.Is(err, ErrNotPending) { // an attempt is running by now
			return now, false, nil
		}
		if err != nil {
			return now, false, err
		}
		current = now
	}
	claim := protocol.Next(current, protocol.ClaimQueued(current, protocol.MarkOwner(newOwner(), protocol.Unset), protocol.Unset, c.options.Lease)).Change
	answer, err := c.swap(ctx, &claim, askTries)
	switch {
	case err != nil:
		return current, false, fmt.Errorf("%w: cancel: %w", ErrUnavailable, err)
	case answer.Busy:
		return current, false, &waitError{after: protocol.RetryAfter(current)}
	case !answer.Applied(claim):
		return current, false, nil
	}
	bounded, cancel := c.bounded(ctx)
	defer cancel()
	claimed := recordAfter(claim, current)
	p, _ := ProgressOf(current)
	p = p.with(claimed.Attempt, TryInterrupted, &cancelledError{reason: reason})
	d, now, err := c.completeAlone(bounded, claimed, protocol.Event{Step: protocol.StepDoubt, Token: claimed.Token, Outcome: p.encode(c.caps.MaxOutcome)})
	if err != nil {
		return current, false, fmt.Errorf("%w: cancel: %w", ErrUnavailable, err)
	}
	if d.Answer == protocol.Apply {
		c.emit(ctx, EventInDoubt, now, ErrCancelled)
	}
	return now, d.Answer == protocol.Apply, nil
}

// requestCancel writes a request for the record's leader. The record was read after
// begun.
func (c *Core) requestCancel(ctx context.Context, current store.Record, begun instant, reason string) error {
	asking := cancelRecord(current.ID)
	asking.Outcome = encodeFailure(&Failure{Code: codeCancelled, Message: reason}, c.caps.MaxOutcome)
	e := protocol.Event{
		Step: protocol.StepCreate, Owner: newOwner(), Identity: asking, Delay: c.retention(current), Expire: c.retention(current),
	}
	d, now, err := c.applyAlone(ctx, store.Record{}, e, askTries)
	if err == nil && d.Answer == protocol.Replay {
		e.Outcome = asking.Outcome
		switch {
		case now.State == store.Failed: // the request was withdrawn
			e.Step, e.Owned = protocol.StepRedrive, true
			_, _, err = c.applyAlone(ctx, now, e, askTries)
		case now.Since > current.Age+c.since(begun):
			// The request is older than the record, so it was made for an earlier
			// record of the same key.
			e.Step = protocol.StepReschedule
			_, _, err = c.applyAlone(ctx, now, e, askTries)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: request cancellation: %w", ErrUnavailable, err)
	}
	return nil
}

// withdrawCancel withdraws a request of [Core.Cancel] for attempts that have ended.
func (c *Core) withdrawCancel(ctx context.Context, current store.Record) error {
	asked, err := c.get(ctx, cancelRecord(current.ID).ID)
	if err == nil && asked.State == store.Pending {
		_, _, err = c.applyAlone(ctx, asked, protocol.Event{Step: protocol.StepCancel, Owner: newOwner(), Expire: c.retention(current)}, askTries)
	}
	if err != nil {
		return fmt.Errorf("%w: withdraw the cancellation: %w", ErrUnavailable, err)
	}
	return nil
}

// cancelRecord returns the identity of the record that requests the cancellation of
// id's attempt.
func cancelRecord(id store.ID) store.Record {
	r := store.Record{Operation: cancelOperation, Scope: sharedScope, Key: id.String()}
	r.ID = store.NewID(r.Operation, r.Scope, r.Key)
	return r
}

// checkCancelRequests cancels the attempts whose keys were cancelled.
func (c *Core) checkCancelRequests(ctx context.Context, attempts []*Attempt) {
	ids := make([]store.ID, len(attempts))
	for i, a := range attempts {
		ids[i] = cancelRecord(a.call.id).ID
	}
	asked, err := c.store.Get(ctx, ids)
	if err != nil {
		c.emit(ctx, EventStoreError, store.Record{Operation: cancelOperation}, err)
		return
	}
	for i, a := range attempts {
		if r := recordOf(asked[i]); r.State == store.Pending && r.Expire >= 0 && a.isCancelRequest(r) {
			a.cancel(&cancelledError{of: a, reason: decodeFailure(r.Outcome).Message})
		}
	}
}

// isCancelRequest reports whether the request is for this attempt's record, and not
// for an earlier record of the same key. The earlier record was kept for its
// retention; half of the retention is more than clocks may differ by.
func (a *Attempt) isCancelRequest(asked store.Record) bool {
	age := a.Record().Age + a.c.since(a.begun)
	return asked.Since <= age+a.times.retention/2
}
