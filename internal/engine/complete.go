package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// finish writes the end of the attempt. It returns (nil, nil) if *current is the
// answer. *current is the claimed record, and becomes the current one.
func (a *Attempt) finish(v any, err error, current *store.Record) (*Outcome, error) {
	ctx := a.detached()
	if settled := a.txOutcome.Load(); settled != nil {
		if *current = settled.current; settled.err != nil {
			return nil, settled.err
		}
		if err != nil {
			a.emit(ctx, event.AfterOutcome, *current, err)
		}
		return nil, nil
	}
	var e protocol.Event
	if err == nil {
		err = errWithoutCommit(a)
	}
	a.endEvent(ctx, &e, a.result(ctx, v, err), err)
	asked := a.c.cache.Now()
	var d protocol.Decision
	if serr := a.writeEnd(ctx, current, &e, &d); serr != nil {
		return nil, a.keepUnrecorded(current, &e, err, serr)
	}
	a.renewer.stop()
	a.c.cache.Put(current, asked)
	if d.Answer == protocol.InDoubt {
		// Another caller has recorded the doubt. What this attempt knows goes to
		// its own caller only.
		return nil, a.attemptError(store.Unknown, store.InDoubt, err)
	}
	if d.Answer != protocol.Apply {
		return answerFenced(ctx, a, *current, e.Step)
	}
	a.emitEnd(ctx, d.Step, current, err)
	return nil, a.endError(d.Step.NeedsProof(), current, err)
}

// writeEnd writes the end of the attempt. Under policy Atomic it is not batched,
// because it may have to wait for a transaction of this attempt.
func (a *Attempt) writeEnd(ctx context.Context, current *store.Record, e *protocol.Event, d *protocol.Decision) (err error) {
	if !a.policy.Transactional() {
		return a.c.writer.complete(ctx, a.Record, current, e, d)
	}
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	*d, *current, err = a.c.writer.completeAlone(ctx, a.Record(), *e)
	return err
}

// errWithoutCommit returns the error of a success without a committed transaction
// of InTx, or nil. It is called when no transaction of InTx has decided the
// attempt. An adapter knows whether its answer claims that the operation took
// place.
func errWithoutCommit(a *Attempt) error {
	switch {
	case !a.policy.Transactional() || a.adapter != nil && !a.adapter.Claims():
		return nil
	case a.tx.wasTried():
		return errNotCommitted
	default:
		return errWithoutTx
	}
}

// keepUnrecorded handles an end that the store has not confirmed in time. The
// caller of a finished effect receives success; after any other end the outcome is
// unknown. Both are retried in the background with the same token.
func (a *Attempt) keepUnrecorded(current *store.Record, e *protocol.Event, err, serr error) error {
	*current = a.Record()
	a.right.keep(*e, serr)
	if !e.Step.Succeeds() {
		return a.attemptError(store.Unknown, store.InProgress, errors.Join(err, serr))
	}
	current.State, current.Outcome = store.Succeeded, e.Outcome
	return nil
}

// answerFenced returns the answer of a leader whose change was superseded: the current
// record.
func answerFenced(ctx context.Context, a *Attempt, now store.Record, end protocol.Step) (*Outcome, error) {
	a.emit(ctx, event.Fenced, now, nil)
	if !a.policy.Transactional() && protocol.Contradicts(end, &now) {
		a.emit(ctx, event.Conflict, now, nil)
	}
	return a.c.answer(ctx, &a.call, now)
}
