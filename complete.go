package semel

import (
	"context"
	"errors"

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
			a.emit(ctx, EventAfterOutcome, *current, err)
		}
		return nil, nil
	}
	var e protocol.Event
	if err == nil {
		err = a.successWithoutTx()
	}
	a.endEvent(ctx, &e, v, err)
	asked := a.c.cache.clock()
	var d protocol.Decision
	if serr := a.writeEnd(ctx, current, &e, &d); serr != nil {
		return nil, a.keepUnrecorded(ctx, current, &e, err, serr)
	}
	a.renewer.stop()
	a.c.cache.put(current, asked)
	if d.Answer == protocol.InDoubt {
		// Another caller has recorded the doubt. What this attempt knows goes to
		// its own caller only.
		return nil, a.attemptError(store.Unknown, store.InDoubt, err)
	}
	if d.Answer != protocol.Apply {
		return a.fenced(ctx, *current, e.Step)
	}
	a.emitEnd(ctx, d.Step, current, err)
	return nil, a.endError(d.Step, current, err)
}

// writeEnd writes the end of the attempt. Under policy Atomic it is not batched,
// because it may have to wait for a transaction of this attempt.
func (a *Attempt) writeEnd(ctx context.Context, current *store.Record, e *protocol.Event, d *protocol.Decision) (err error) {
	if !a.policy.Transactional() {
		return a.c.complete(ctx, a.Record, current, e, d)
	}
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	*d, *current, err = a.c.completeAlone(ctx, a.Record(), *e)
	return err
}

// Errors of an attempt under policy Atomic whose function returned success although
// no transaction of InTx was committed. They are never wrapped.
var (
	// errWithoutTx: InTx was never called, so the effect, if there is one, is
	// outside of the transaction.
	errWithoutTx = errors.New("semel: the function returned success without having called InTx: " +
		"the effect of an operation with policy Atomic must be in the transaction of InTx")
	// errNotCommitted: InTx was called, and its transaction was not committed
	// before the function returned.
	errNotCommitted = errors.New("semel: the function returned success although the " +
		"transaction of InTx did not commit: wait for InTx and return its error")
)

// successWithoutTx returns the error of a success without a committed transaction
// of InTx, or nil. It is called when no transaction of InTx has decided the
// attempt. An adapter knows whether its answer claims that the operation took
// place.
func (a *Attempt) successWithoutTx() error {
	switch {
	case !a.policy.Transactional() || a.adapter != nil && !a.adapter.Claims():
		return nil
	case a.hasTriedTx():
		return errNotCommitted
	default:
		return errWithoutTx
	}
}

// endEvent sets e, which is empty, to the end of an attempt whose function returned
// v and err.
func (a *Attempt) endEvent(ctx context.Context, e *protocol.Event, v any, err error) {
	e.Token, e.Policy, e.Expire = a.token, a.policy, a.times.retention
	if err == nil {
		end := attemptEnd{Ending: protocol.Ending{Policy: a.policy, Cause: protocol.ByResult}, result: a.outcome(ctx, v)}
		a.c.conclude(&end, e)
		return
	}
	e.Owner = newOwner()
	before := a.Record()
	end := a.c.endingOf(a.ctx, &a.call, &before, a.token.Attempt, err, a.rolledBack()) //nolint:contextcheck // the end of the attempt's context matters
	end.Policy = a.policy
	if err == errWithoutTx { //nolint:errorlint // it is never wrapped
		end.Cause = protocol.OutsideTx
	} else if why := a.cancelled(); why != nil && end.Cause == protocol.ByError && !end.Final {
		end.cancel(&before, a.token.Attempt, why)
	}
	if end.NeedsProbe() {
		end.result = a.evidence(ctx)
		end.Evidence = end.result != nil
	}
	a.c.conclude(&end, e)
}

// rolledBack reports whether every effect of the attempt was in a transaction that
// was rolled back, or that can no longer commit after the record has changed. Under
// policy Atomic the effect is in such a transaction. A function that never called
// InTx may have had an effect outside.
func (a *Attempt) rolledBack() bool { return a.policy.Transactional() && a.hasTriedTx() }

// hasTriedTx reports whether InTx was called.
func (a *Attempt) hasTriedTx() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.triedTx
}

// evidence probes for the effect of an attempt whose effect is unknown.
func (a *Attempt) evidence(ctx context.Context) []byte {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	outcome, err := a.c.evidence(ctx, a.call.op, a.Record())
	if err != nil {
		a.emit(ctx, EventStoreError, a.Record(), err)
	}
	return outcome
}

// outcome encodes a result. If it cannot be stored, the outcome is a tombstone: the
// operation must not run again because of its result.
func (a *Attempt) outcome(ctx context.Context, v any) []byte {
	e, why := a.c.outcome(v)
	a.lossless = e.lossless || why != nil // a tombstone cannot be decoded, so the caller keeps its own value
	switch {
	case why != nil:
		a.emit(ctx, EventTombstone, a.Record(), why)
	case e.altered != nil:
		a.emit(ctx, EventAltered, a.Record(), e.altered)
	}
	return e.outcome
}

// outcome encodes a result. If the outcome is a tombstone, why says what is wrong
// with the result.
func (c *Core) outcome(v any) (e encoded, why error) {
	v = resultOf(v)
	if t, ok := v.(Tombstone); ok {
		return encoded{outcome: encodeTombstone(cut(string(t), 200))}, errTombstone
	}
	e, why = encodeResult(v)
	switch {
	case why != nil:
		return encoded{outcome: encodeTombstone("the result cannot be stored: " + cut(why.Error(), 200))}, why
	case len(e.outcome) > c.caps.MaxOutcome:
		return encoded{outcome: encodeTombstone("the result is larger than the store keeps")}, errTooLarge
	default:
		return e, nil
	}
}

var (
	errTooLarge  = errors.New("semel: the result is larger than the store keeps")
	errTombstone = errors.New("semel: the adapter cannot return the result again")
)

// Tombstone is the result of an operation that succeeded and whose result cannot be
// returned again, because it was streamed for instance. Its text is the reason.
// Retries get [ErrResultUnavailable].
type Tombstone string

// keepUnrecorded handles an end that the store has not confirmed in time. The
// caller of a finished effect receives success; after any other end the outcome is
// unknown. Both are retried in the background with the same token.
func (a *Attempt) keepUnrecorded(ctx context.Context, current *store.Record, e *protocol.Event, err, serr error) error {
	*current = a.Record()
	a.c.keepUnrecorded(ctx, pendingEnd{record: *current, event: *e, renewer: &a.renewer}, serr)
	if !e.Step.Succeeds() {
		return a.attemptError(store.Unknown, store.InProgress, errors.Join(err, serr))
	}
	current.State, current.Outcome = store.Succeeded, e.Outcome
	return nil
}

// fenced returns the answer of a leader whose change was superseded: the current
// record.
func (a *Attempt) fenced(ctx context.Context, now store.Record, end protocol.Step) (*Outcome, error) {
	a.emit(ctx, EventFenced, now, nil)
	if !a.policy.Transactional() && protocol.Contradicts(end, &now) {
		a.emit(ctx, EventConflict, now, nil)
	}
	return a.c.answer(ctx, &a.call, now)
}

// answer returns the answer of the current record.
func (c *Core) answer(ctx context.Context, call *Call, now store.Record) (*Outcome, error) {
	switch answer := protocol.AnswerTo(&now, call.Compare(now)); answer {
	case protocol.Lost:
		return nil, ErrOutcomeUnknown
	case protocol.Replay:
		return c.replay(ctx, now)
	case protocol.Wait:
		return nil, &waitError{after: protocol.RetryAfter(now)}
	default:
		return nil, c.refusal(ctx, answer, now)
	}
}

// endError returns the error of an attempt whose end was applied.
func (a *Attempt) endError(s protocol.Step, now *store.Record, err error) error {
	return endError(a.call.op, now, protocol.Verdict(s.NeedsProof(), now.Tainted, a.policy, isAnswered(err)), err)
}

// endError returns the error of an attempt of op that ended with err and left the
// record now, or nil after a success. The verdict is about a record that another
// attempt may follow.
func endError(op *operation, now *store.Record, verdict store.Verdict, err error) error {
	switch now.State {
	case store.Succeeded:
		return nil
	case store.Failed:
		return decodeFailure(now.Outcome)
	case store.Pending:
		told := attemptError(op.name, verdict, store.Pending, err)
		told.After = max(now.Due, 0)
		return told
	case store.Absent, store.InProgress, store.InDoubt:
	}
	return attemptError(op.name, store.Unknown, now.State, err)
}

func (a *Attempt) emitEnd(ctx context.Context, s protocol.Step, at *store.Record, err error) {
	if a.c.options.Observer == nil {
		return
	}
	kind := endKind(s, at)
	if kind == EventSucceeded {
		err = nil
	}
	a.emit(ctx, kind, *at, err)
}

func (a *Attempt) emit(ctx context.Context, kind EventKind, r store.Record, err error) {
	if a.c.options.Observer == nil {
		return // so that the clock is not read
	}
	a.c.observe(ctx, Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: r.State,
		Err: err, Elapsed: a.c.since(a.begun),
	})
}
