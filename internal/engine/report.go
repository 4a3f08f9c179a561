package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

func (a *Attempt) emit(ctx context.Context, kind event.Kind, r store.Record, err error) {
	if a.c.observer == nil {
		return // so that the clock is not read
	}
	a.c.observe(ctx, event.Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: r.State,
		Err: err, Elapsed: a.c.clock.Since(a.begun),
	})
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

func (a *Attempt) attemptError(v store.Verdict, s store.State, err error) *callerr.AttemptError {
	return callerr.NewAttemptError(a.call.op.name, v, s, err)
}

// rollbackVerdict is what a rollback says about the effect. It proves nothing about
// an earlier attempt.
func (a *Attempt) rollbackVerdict() store.Verdict {
	return protocol.Verdict(true, a.right.ending().Tainted, a.policy, false)
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

// proof reports whether err proves that the attempt had no effect, and whether the
// failure is then stored.
func (o *operation) proof(err error, rolledBack bool) (proven, final bool) {
	_, fence := errtype.Find[*callerr.FenceError](err)
	_, crashed := errtype.Find[*callerr.ExhaustedError](err)
	if fence || crashed || errors.Is(err, callerr.ErrAbandoned) || err == errNotCommitted { //nolint:errorlint // the last is never wrapped
		return rolledBack, false // the operation itself has not answered
	}
	mark, marked := errtype.Find[*callerr.MarkedError](err)
	proven = marked || rolledBack
	if !proven && o.classify != nil {
		proven = o.classify(err) == store.NotCommitted
	}
	if marked && mark.Keep {
		return true, true
	}
	return proven, proven && o.onError == Keep && !isTransient(err)
}

// isTransient reports whether err comes from the circumstances of the attempt, such
// as a lost lease or a cancelled context. Such an error is not the operation's
// answer and is never stored.
func isTransient(err error) bool {
	_, infrastructure := errtype.Find[*callerr.TxError](err)
	_, snoozed := errtype.Find[*callerr.SnoozeError](err)
	return infrastructure || snoozed || callerr.IsOwn(err, callerr.ErrLeaseLost) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isAnswered reports whether err can be an answer of the receiver of the effect. An
// attempt that did not send its request has none.
func isAnswered(err error) bool {
	_, snoozed := errtype.Find[*callerr.SnoozeError](err)
	_, cancelled := errtype.Find[*callerr.CancelledError](err)
	_, crashed := errtype.Find[*callerr.ExhaustedError](err)
	_, unread := errtype.Find[*callerr.InputError](err)
	return !snoozed && !cancelled && !crashed && !unread
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
