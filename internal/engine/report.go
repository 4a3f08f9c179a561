package engine

import (
	"context"
	"errors"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

func (a *Attempt) emit(ctx context.Context, kind event.Kind, r store.Record, err error) {
	if a.c.observer != nil || (event.Event{Kind: kind}).Alarm() { // otherwise the clock need not be read
		a.c.observe(ctx, a.eventNow(kind, r.State, err))
	}
}

func (a *Attempt) eventNow(kind event.Kind, state store.State, err error) event.Event {
	return event.Event{
		Kind: kind, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: state,
		Err: err, Elapsed: clock.Since(a.begun),
	}
}

func (a *Attempt) emitEnd(ctx context.Context, s protocol.Step, at *store.Record, err error) {
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
		if proven && !a.right.rolledBack() {
			err = callerr.NotCommitted(err) // Classify says so, if the function did not
		}
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

// InjectTrace returns what the tracer needs to continue the trace of ctx elsewhere, or nil.
func InjectTrace(ctx context.Context, c *Core) map[string]string {
	if c.options.Tracer == nil {
		return nil
	}
	carrier := c.options.Tracer.Inject(ctx)
	size := 0
	for name, value := range carrier {
		size += len(name) + len(value)
	}
	if size == 0 || size > event.MaxTrace {
		return nil
	}
	return carrier
}

// ExtractTrace returns ctx in the trace of an earlier InjectTrace.
func ExtractTrace(ctx context.Context, c *Core, carrier map[string]string) context.Context {
	if c.options.Tracer == nil || len(carrier) == 0 {
		return ctx
	}
	return c.options.Tracer.Extract(ctx, carrier)
}

// traceOf returns ctx in the trace that is stored in the record of an enqueued call.
func traceOf(ctx context.Context, c *Core, r *store.Record) context.Context {
	if c.options.Tracer == nil {
		return ctx
	}
	p, _ := codec.ProgressOf(*r)
	return ExtractTrace(ctx, c, p.Trace)
}

// trace tells the tracer that the function of the attempt is about to run, and returns the
// function's context.
func (a *Attempt) trace(ctx context.Context) context.Context {
	if a.c.options.Tracer == nil || a.endTrace != nil {
		return ctx
	}
	ctx, a.endTrace = a.c.options.Tracer.Start(ctx, event.Event{
		Kind: event.Claimed, Operation: a.call.op.name, ID: a.call.id, Attempt: a.token.Attempt, State: store.InProgress,
	})
	return ctx
}

// traceEnd tells the tracer how the attempt has ended: current is the record now, and err
// what the caller receives. They say the kind if it is empty.
func (a *Attempt) traceEnd(kind event.Kind, current *store.Record, err error) {
	end := a.endTrace
	if end == nil {
		return
	}
	a.endTrace = nil
	if kind == "" {
		kind = tracedEnd(a, current, err)
	}
	end(a.eventNow(kind, current.State, err))
}

// tracedEnd returns the kind of the end of an attempt that left the record current.
func tracedEnd(a *Attempt, current *store.Record, err error) event.Kind {
	told, _ := errtype.Find[*callerr.AttemptError](err)
	switch {
	case current.Owner == a.token.Owner && current.State == store.InProgress:
		return event.Late
	case current.Owner == a.token.Owner:
		return endKind(protocol.StepInline, current)
	case current.State == store.InDoubt:
		return event.InDoubt
	case told != nil && told.Verdict == store.Unknown:
		return event.Late
	case told != nil:
		return event.Released
	default:
		return event.Fenced
	}
}
