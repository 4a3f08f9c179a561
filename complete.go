package semel

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
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
		err = a.successWithoutTx()
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
		return a.fenced(ctx, *current, e.Step)
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
		a.emit(ctx, event.StoreError, a.Record(), err)
	}
	return outcome
}

// result encodes v, unless the function returned err. If v cannot be stored, the
// outcome is a tombstone: the operation must not run again because of its result.
func (a *Attempt) result(ctx context.Context, v any, err error) []byte {
	if err != nil {
		return nil
	}
	e, why := a.c.outcome(v)
	a.lossless = e.Lossless || why != nil // a tombstone cannot be decoded, so the caller keeps its own value
	switch {
	case why != nil:
		a.emit(ctx, event.Tombstone, a.Record(), why)
	case e.Altered != nil:
		a.emit(ctx, event.Altered, a.Record(), e.Altered)
	}
	return e.Outcome
}

// outcome encodes a result. If the outcome is a tombstone, why says what is wrong
// with the result.
func (c *Core) outcome(v any) (e codec.Encoded, why error) {
	v = codec.ResultOf(v)
	if t, ok := v.(codec.Tombstone); ok {
		return codec.Encoded{Outcome: codec.EncodeTombstone(codec.Cut(string(t), 200))}, errTombstone
	}
	e, why = codec.EncodeResult(v)
	switch {
	case why != nil:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result cannot be stored: " + codec.Cut(why.Error(), 200))}, why
	case len(e.Outcome) > c.caps.MaxOutcome:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result is larger than the store keeps")}, errTooLarge
	default:
		return e, nil
	}
}

var (
	errTooLarge  = errors.New("semel: the result is larger than the store keeps")
	errTombstone = errors.New("semel: the adapter cannot return the result again")
)

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

// fenced returns the answer of a leader whose change was superseded: the current
// record.
func (a *Attempt) fenced(ctx context.Context, now store.Record, end protocol.Step) (*Outcome, error) {
	a.emit(ctx, event.Fenced, now, nil)
	if !a.policy.Transactional() && protocol.Contradicts(end, &now) {
		a.emit(ctx, event.Conflict, now, nil)
	}
	return a.c.answer(ctx, &a.call, now)
}

// answer returns the answer of the current record.
func (c *Core) answer(ctx context.Context, call *Call, now store.Record) (*Outcome, error) {
	switch answer := protocol.AnswerTo(&now, call.Compare(now)); answer {
	case protocol.Lost:
		return nil, callerr.ErrOutcomeUnknown
	case protocol.Replay:
		return c.replay(ctx, now)
	case protocol.Wait:
		return nil, &callerr.WaitError{After: protocol.RetryAfter(now)}
	default:
		return nil, c.refusal(ctx, answer, now)
	}
}

// endError returns the error of an attempt that ended with err and left the record
// now, or nil after a success. proven means that the attempt had no effect; another
// attempt may follow.
func (a *Attempt) endError(proven bool, now *store.Record, err error) error {
	switch now.State {
	case store.Succeeded:
		return nil
	case store.Failed:
		return codec.DecodeFailure(now.Outcome)
	case store.Pending:
		told := a.attemptError(protocol.Verdict(proven, now.Tainted, a.policy, isAnswered(err)), store.Pending, err)
		told.After = max(now.Due, 0)
		return told
	case store.Absent, store.InProgress, store.InDoubt:
	}
	return a.attemptError(store.Unknown, now.State, err)
}

// rollbackVerdict is what a rollback says about the effect. It proves nothing about
// an earlier attempt.
func (a *Attempt) rollbackVerdict() store.Verdict {
	return protocol.Verdict(true, a.right.ending().Tainted, a.policy, false)
}

func (a *Attempt) attemptError(v store.Verdict, s store.State, err error) *callerr.AttemptError {
	return callerr.NewAttemptError(a.call.op.name, v, s, err)
}

func (a *Attempt) emitEnd(ctx context.Context, s protocol.Step, at *store.Record, err error) {
	if a.c.observer == nil {
		return
	}
	kind := endKind(s, at)
	if kind == event.Succeeded {
		err = nil
	}
	a.emit(ctx, kind, *at, err)
}

func (a *Attempt) emit(ctx context.Context, kind event.Kind, r store.Record, err error) {
	if a.c.observer == nil {
		return // so that the clock is not read
	}
	a.c.observe(ctx, event.Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: r.State,
		Err: err, Elapsed: a.c.clock.Since(a.begun),
	})
}

// endKind returns the event for a record that an attempt has ended.
func endKind(s protocol.Step, now *store.Record) event.Kind {
	switch {
	case s == protocol.StepSettle:
		return event.Settled
	case codec.IsDeadLetter(*now) && codec.DecodeFailure(now.Outcome).Code == codec.CodeExhausted:
		return event.Exhausted
	case codec.IsDeadLetter(*now):
		return event.Rejected
	}
	switch now.State {
	case store.Succeeded:
		return event.Succeeded
	case store.Failed:
		return event.Failed
	case store.InDoubt:
		return event.InDoubt
	case store.Absent, store.Pending, store.InProgress:
	}
	return event.Released
}
