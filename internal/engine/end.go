package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// End records how the operation ended. It returns the current outcome, or the error
// that every caller receives; either can differ from the arguments, because another
// attempt may have ended the record. End does not stop with the caller's context;
// it takes at most RecordTimeout. Ending twice is ErrInvalid.
//
// If the outcome of a finished effect cannot be recorded, End returns success, the
// Observer receives event.Late, and recording is retried with the same token.
func (a *Attempt) End(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, true)
	return out, callerr.Seal(err)
}

// EndQuiet is End for adapters that keep the value that they pass as v, or gave to
// InTx. It returns nil and nil if the record holds exactly that value as this
// attempt's outcome. It returns the outcome if the record holds another one: the
// outcome of another attempt, one that a probe found, or v with a part that JSON
// has changed ([event.Altered]). An error is the same as End's.
func (a *Attempt) EndQuiet(v any, err error) (*Outcome, error) {
	out, err := a.end(v, err, err != nil && a.txOutcome.Load() == nil)
	return out, callerr.Seal(err)
}

// end implements End. It returns the attempt's own outcome only if own is set, or
// if decoding it does not give the function's value.
func (a *Attempt) end(v any, err error, own bool) (out *Outcome, told error) {
	if !a.ended.CompareAndSwap(false, true) {
		return nil, callerr.Invalid("Attempt", "has ended already")
	}
	current := a.Record()
	finished := false
	defer func() { // also when a function of the operation panics
		if !finished {
			a.renewer.stop() // the attempt is over: the lease decides
		}
		a.close(&current, told)
	}()
	out, told = a.finish(v, err, &current)
	finished = true
	if replayed := current.Owner != a.token.Owner; out == nil && told == nil && (own || replayed || !a.lossless) {
		out = &Outcome{Record: current, Replayed: replayed, lossless: a.lossless}
	}
	return out, told
}

// Abandon ends an attempt whose function did not return, because of a panic or
// runtime.Goexit. That is no evidence: the effect is unknown, unless it was in a
// transaction that was rolled back. After End it does nothing, so it can be
// deferred.
func (a *Attempt) Abandon() {
	if !a.ended.Load() {
		_, _ = a.End(nil, callerr.ErrAbandoned)
	}
}

// AbandonWith is [Attempt.Abandon] with the reason why the function did not return.
// The reason is kept in the record's [Progress] and sent to the Observer. No mark
// in it is evidence.
func (a *Attempt) AbandonWith(why error) {
	if !a.ended.Load() {
		_, _ = a.End(nil, &callerr.AbandonedError{Why: why})
	}
}

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
	case a.tx.tried.Load():
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

// answerFenced returns the answer for a leader after another change has superseded its
// own: the current record.
func answerFenced(ctx context.Context, a *Attempt, now store.Record, end protocol.Step) (*Outcome, error) {
	a.emit(ctx, event.Fenced, now, nil)
	if !a.policy.Transactional() && protocol.Contradicts(end, &now) {
		a.emit(ctx, event.Conflict, now, nil)
	}
	return a.c.answer(ctx, &a.call, now)
}
