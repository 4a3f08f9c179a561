package semel

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// finish ends the attempt in the store, and returns what to tell: neither an outcome
// nor an error, when that is stands, which is what was claimed and becomes what stands.
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
	var e event
	if err == nil {
		err = a.successWithoutTx()
	}
	a.endEvent(ctx, &e, v, err)
	asked := a.c.cache.clock()
	var d decision
	if serr := a.writeEnd(ctx, current, &e, &d); serr != nil {
		return nil, a.keepUnrecorded(ctx, current, &e, err, serr)
	}
	a.renewer.stop()
	a.c.cache.put(current, asked)
	if d.answer == answerInDoubt {
		// Somebody recorded it first; what this attempt knows is its own.
		return nil, a.attemptError(store.Unknown, store.InDoubt, err)
	}
	if d.answer != answerApply {
		return a.fenced(ctx, *current, err == nil)
	}
	a.emitEnd(ctx, d.step, current, err)
	return nil, a.endError(d.step, current, err)
}

// write has the end of the attempt written. What may have to wait
// for a transaction of its own goes alone.
func (a *Attempt) writeEnd(ctx context.Context, current *store.Record, e *event, d *decision) (err error) {
	if a.policy != policyAtomic {
		return a.c.complete(ctx, a.Record, current, e, d)
	}
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	*d, *current, err = a.c.completeAlone(ctx, a.Record(), *e)
	return err
}

// Errors of an attempt under policy Atomic whose function returned success although no
// transaction of InTx was committed. They are never wrapped.
var (
	// errWithoutTx: InTx was never called, so that the effect, if there is one, is
	// elsewhere.
	errWithoutTx = errors.New("semel: the function returned success without having called InTx: " +
		"the effect of an operation with policy Atomic must be in the transaction of InTx")
	// errNotCommitted: InTx was called, and its transaction did not commit before the
	// function returned.
	errNotCommitted = errors.New("semel: the function returned success although the " +
		"transaction of InTx did not commit: wait for InTx and return its error")
)

// unfoundedSuccess returns what is wrong with the success that the function returned, or
// nil. It is called when no transaction of InTx has decided the attempt. An adapter knows
// whether its answer claims that the operation took place.
func (a *Attempt) successWithoutTx() error {
	switch {
	case a.policy != policyAtomic || a.adapter != nil && !a.adapter.Claims():
		return nil
	case a.hasTriedTx():
		return errNotCommitted
	default:
		return errWithoutTx
	}
}

// ending makes of e, which is empty, what an attempt that returned v and err asks for.
func (a *Attempt) endEvent(ctx context.Context, e *event, v any, err error) {
	e.token, e.policy, e.expire = a.token, a.policy, a.times.retention
	if err == nil {
		e.step = stepSucceed
		e.outcome = a.outcome(ctx, v)
		return
	}
	e.owner = newOwner()
	if err == errWithoutTx { //nolint:errorlint // it is never wrapped
		e.step, e.taints = stepDoubt, true // a wrong program must not repeat the effect
		return
	}
	if spent, ok := errors.AsType[*exhaustedError](err); ok {
		a.endExhausted(e, spent)
		return
	}
	proven, keep := a.proof(err)
	switch {
	case proven && keep:
		e.step, e.proven = stepFail, true
		e.outcome = encodeFailure(err, a.c.caps.MaxOutcome)
		if a.call.op.rejects() {
			a.call.op.retry.deadLetter(e, err, a.c.caps.MaxOutcome)
		}
		return
	case proven:
		e.step, e.proven = stepRelease, true
	case a.policy.runsAgain():
		// The policy runs again when nobody knows: whoever is next knows that
		// this attempt may have had an effect.
		e.step, e.taints = stepRequeue, a.policy == policyAtomic
	default:
		e.step = stepDoubt
		if outcome := a.evidence(ctx); outcome != nil {
			e.step, e.outcome = stepSucceed, outcome
			return
		}
	}
	if why := a.cancelled(); why != nil {
		a.cancelledEnd(e, why)
		return
	}
	if a.call.op.retry != nil {
		a.decideRetry(e, err)
		return
	}
	p, _ := ProgressOf(a.Record())
	e.outcome = a.c.progress(p.countEnd(), a.call.op, a.call.id)
}

// proof tells whether err proves that nothing was committed, and whether it is
// then to be kept.
func (a *Attempt) proof(err error) (proven, keep bool) {
	_, fence := errors.AsType[*fenceError](err)
	if fence || errors.Is(err, errAbandoned) || err == errNotCommitted { //nolint:errorlint // the last is never wrapped
		return a.rolledBack(), false // the operation has not answered
	}
	mark, marked := errors.AsType[*markedError](err)
	proven = marked || a.rolledBack()
	if !proven && a.call.op.classify != nil {
		proven = a.call.op.classify(err) == store.NotCommitted
	}
	if marked && mark.keep {
		return true, true
	}
	return proven, proven && a.call.op.onError == Keep && !isTransient(err)
}

// rolledBack reports whether all that the attempt can have done was in transactions of its
// own that were rolled back, or can no longer commit once the record has changed. Under
// policy Atomic the effect is in them. A function that never called InTx may have had an
// effect elsewhere.
func (a *Attempt) rolledBack() bool { return a.policy == policyAtomic && a.hasTriedTx() }

// hasTriedTx reports whether InTx was called.
func (a *Attempt) hasTriedTx() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.triedTx
}

// circumstantial tells whether err speaks of the circumstances of an attempt
// rather than of the operation, so that it is nobody's answer and never kept.
func isTransient(err error) bool {
	_, infrastructure := errors.AsType[*txError](err)
	_, snoozed := errors.AsType[*snoozeError](err)
	return infrastructure || snoozed || isOwn(err, ErrLeaseLost) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// evidence looks, under policy Heal, for the effect of an attempt that does not
// know its own.
func (a *Attempt) evidence(ctx context.Context) []byte {
	if a.policy != policyHeal {
		return nil
	}
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	outcome, err := a.c.evidence(ctx, a.call.op, a.Record())
	if err != nil {
		a.emit(ctx, EventStoreError, a.Record(), err)
	}
	return outcome
}

// outcome encodes a result, or the tombstone of one that cannot be stored: it
// is never a reason to run again.
func (a *Attempt) outcome(ctx context.Context, v any) []byte {
	e, why := a.c.outcome(v)
	a.lossless = e.lossless || why != nil // a tombstone cannot be decoded: the caller keeps its value
	switch {
	case why != nil:
		a.emit(ctx, EventTombstone, a.Record(), why)
	case e.altered != nil:
		a.emit(ctx, EventAltered, a.Record(), e.altered)
	}
	return e.outcome
}

// outcome encodes a result. Why says what is wrong with it, if the outcome is a
// tombstone.
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
	errTombstone = errors.New("semel: the adapter cannot give the result back")
)

// Tombstone is the result of an operation that succeeded and whose answer
// cannot be given a second time, because it was streamed for instance. Its text
// says why; askers get [ErrResultUnavailable].
type Tombstone string

// unrecorded is what is left when the store gave no answer in time. A finished
// effect is told as success; everything else is told as unknown. Both are tried
// again in the background, with the same token.
func (a *Attempt) keepUnrecorded(ctx context.Context, current *store.Record, e *event, err, serr error) error {
	*current = a.Record()
	a.c.keepUnrecorded(ctx, pendingEnd{record: *current, event: *e, renewer: &a.renewer}, serr)
	if e.step != stepSucceed {
		return a.attemptError(store.Unknown, store.InProgress, errors.Join(err, serr))
	}
	current.State, current.Outcome = store.Succeeded, e.outcome
	return nil
}

// lost is what a leader tells whose change is not in force: what stands.
func (a *Attempt) fenced(ctx context.Context, now store.Record, acted bool) (*Outcome, error) {
	a.emit(ctx, EventFenced, now, nil)
	if acted && a.policy != policyAtomic && now.State != store.Succeeded {
		a.emit(ctx, EventConflict, now, nil)
	}
	return a.c.answer(ctx, &a.call, now)
}

// answer tells a call what stands, whatever it wished.
func (c *Core) answer(ctx context.Context, call *Call, now store.Record) (*Outcome, error) {
	if now.State == store.Absent {
		return nil, ErrOutcomeUnknown
	}
	if err := c.checkSameRequest(ctx, call, &now); err != nil {
		return nil, err
	}
	switch {
	case now.State.Final():
		return c.replay(ctx, now)
	case now.State == store.InDoubt:
		return nil, ErrInDoubt
	default:
		return nil, &waitError{after: retryAfter(now)}
	}
}

// told is the error of an attempt that is recorded as it wished.
func (a *Attempt) endError(s step, now *store.Record, err error) error {
	switch now.State {
	case store.Succeeded:
		return nil
	case store.Failed:
		return decodeFailure(now.Outcome)
	case store.Pending:
		verdict := store.Unknown
		if s == stepRelease && (!now.Tainted || a.speaksForAll(err)) {
			verdict = store.NotCommitted
		}
		told := attemptError(a.call.op.name, verdict, store.Pending, err)
		told.After = max(now.Due, 0)
		return told
	case store.Absent, store.InProgress, store.InDoubt:
	}
	return a.attemptError(store.Unknown, now.State, err)
}

func (a *Attempt) emitEnd(ctx context.Context, s step, at *store.Record, err error) {
	if a.c.options.Observer == nil {
		return
	}
	switch now := *at; {
	case s == stepSettle:
		a.emit(ctx, EventSettled, now, err)
	case now.State == store.Succeeded:
		a.emit(ctx, EventSucceeded, now, nil)
	case now.State == store.Failed || now.State == store.InDoubt:
		a.emit(ctx, endKind(now), now, err)
	default:
		a.emit(ctx, EventReleased, now, err)
	}
}

func (a *Attempt) emit(ctx context.Context, kind EventKind, r store.Record, err error) {
	if a.c.options.Observer == nil {
		return // and nobody reads the clock
	}
	a.c.observe(ctx, Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: r.State,
		Err: err, Elapsed: a.c.since(a.begun),
	})
}
