package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// decideRetry applies the operation's Retry to an attempt that ended with err:
// either another attempt later, or the end. e says whether there is proof that
// nothing was committed.
func (a *Attempt) decideRetry(e *protocol.Event, err error) {
	before, _ := ProgressOf(a.Record())
	p, f, delay := a.call.op.retry.decide(a.ctx, before, a.token.Attempt, err)
	if f != nil {
		a.endForGood(e, p, f, err)
		return
	}
	e.Outcome, e.Delay = a.c.progress(p, a.call.op, a.call.id), delay
}

// cancelled returns the cancellation of the attempt's key, or nil.
func (a *Attempt) cancelled() *cancelledError {
	why, _ := errors.AsType[*cancelledError](context.Cause(a.ctx))
	if why == nil || why.of != a {
		return nil // the context of an outer attempt was cancelled
	}
	return why
}

// cancelledEnd ends the record of an attempt whose key was cancelled and that did
// not succeed. The function's error does not matter.
func (a *Attempt) cancelledEnd(e *protocol.Event, why *cancelledError) {
	before, _ := ProgressOf(a.Record())
	p := before.with(a.token.Attempt, TryInterrupted, why)
	a.endForGood(e, p, p.failure(codeCancelled, why.reason), why)
}

// decide returns the progress after an attempt that ended with err, and either the
// final failure or the delay of the next attempt.
func (r *Retry) decide(ctx context.Context, p Progress, attempt uint32, err error) (Progress, *Failure, time.Duration) {
	if s, ok := errors.AsType[*snoozeError](err); ok {
		return p.with(attempt, TrySnooze, nil), nil, s.after
	}
	if spent, ok := errors.AsType[*exhaustedError](err); ok {
		p = p.with(attempt, TryInterrupted, spent)
		return p, p.failure(codeExhausted, tooManyCrashes(spent.crashes)), r.delay(err, r.MaxErrors)
	}
	if interrupted(ctx, err) {
		return p.with(attempt, TryInterrupted, err), nil, r.afterInterruption(ctx)
	}
	p = p.with(attempt, TryError, err)
	if p.Errors >= r.MaxErrors {
		return p, p.failure(codeExhausted, tooManyErrors(err)), r.delay(err, p.Errors)
	}
	return p, nil, r.delay(err, p.Errors)
}

// afterInterruption returns no delay if only this process is ending.
func (r *Retry) afterInterruption(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	return max(r.Delay(1), 0)
}

// endForGood ends the record: Failed with proof for all attempts, otherwise
// InDoubt.
func (a *Attempt) endForGood(e *protocol.Event, p Progress, f *Failure, err error) {
	inDoubt := e.Step != protocol.StepRelease || a.tainted() && !a.speaksForAll(err)
	switch {
	case inDoubt && f.Code == codeExhausted && a.policy.RunsAgain():
		e.Step, e.Outcome = protocol.StepDoubt, encodeDeadLetter(f, a.c.caps.MaxOutcome)
	case inDoubt:
		e.Step, e.Outcome = protocol.StepDoubt, a.c.progress(p, a.call.op, a.call.id)
	case f.Code == codeExhausted:
		e.Step = protocol.StepFail
		a.call.op.retry.deadLetter(e, f, a.c.caps.MaxOutcome)
	default:
		e.Step, e.Outcome = protocol.StepFail, encodeFailure(f, a.c.caps.MaxOutcome)
	}
}

// deadLetter makes e leave a dead letter with err.
func (r *Retry) deadLetter(e *protocol.Event, err error, limit int) {
	e.Outcome, e.Expire = encodeDeadLetter(err, limit), r.DeadLetterRetention
}

// rejects reports whether a failure that the function has marked final leaves a
// dead letter. The message is then rejected, and no caller reads the failure.
func (o *operation) rejects() bool { return o.retry != nil && o.retry.Redelivered }

// speaksForAll reports whether err proves that the earlier attempts had no effect
// either. Only the receiver's answer proves that, so an attempt that did not send
// its request proves nothing about them.
func (a *Attempt) speaksForAll(err error) bool {
	_, snoozed := errors.AsType[*snoozeError](err)
	_, cancelled := errors.AsType[*cancelledError](err)
	_, spent := errors.AsType[*exhaustedError](err)
	_, unread := errors.AsType[*inputError](err)
	return a.policy.SpeaksForAll() && !snoozed && !cancelled && !spent && !unread
}

// interruption is the progress of an attempt that is released because the store did
// not answer. It does not count as a crash.
func (c *Core) interruption(op *operation, current store.Record, attempt uint32, cause error) []byte {
	p, _ := ProgressOf(current)
	if op.retry == nil {
		p = p.countEnd()
	} else {
		p = p.with(attempt, TryInterrupted, cause)
	}
	return c.progress(p, op, current.ID)
}

// progress encodes p for a record that is not final, with the operation's
// retention.
func (c *Core) progress(p Progress, op *operation, id store.ID) []byte {
	p.Retention = c.options.timesOf(op, id).retention
	return p.encode(c.caps.MaxOutcome)
}

// exhaustedError means that an attempt was not run, because too many attempts
// before it crashed.
type exhaustedError struct{ crashes int }

func (e *exhaustedError) Error() string { return "semel: " + tooManyCrashes(e.crashes) }

// exhausted returns an error if attempt n must not run, because too many attempts
// before it crashed.
func (o *operation) exhausted(r store.Record, n uint32) error {
	if o.retry == nil {
		return nil
	}
	p, _ := ProgressOf(r)
	if crashes := p.crashes(n); crashes >= o.retry.MaxCrashes {
		return &exhaustedError{crashes}
	}
	return nil
}

// exhausted checks the claimed record.
func (a *Attempt) exhausted() error {
	if a.call.op.retry == nil { // avoids loading the record
		return nil
	}
	return a.call.op.exhausted(a.Record(), a.token.Attempt)
}

// endExhausted ends an attempt that was not run. That proves that this attempt had
// no effect; the record still shows whether an earlier one may have had one.
func (a *Attempt) endExhausted(e *protocol.Event, spent *exhaustedError) {
	e.Step, e.Proven = protocol.StepRelease, true
	if a.tainted() {
		e.Step, e.Proven = protocol.StepDoubt, false
	}
	before, _ := ProgressOf(a.Record())
	p, f, _ := a.call.op.retry.decide(a.ctx, before, a.token.Attempt, spent)
	a.endForGood(e, p, f, spent)
}

// Prepare must be called before the function of an attempt of [Core.Dequeue]. It
// ends an attempt whose operation has crashed too often or whose key was cancelled,
// and under [Fenced] raises the fence and looks the effect up. If it returns an
// outcome or an error, the attempt has ended and its function must not run.
func (a *Attempt) Prepare() (*Outcome, error) {
	if err := a.exhausted(); err != nil {
		return a.End(nil, err)
	}
	if why := a.cancelled(); why != nil {
		return a.End(nil, NotCommitted(why))
	}
	return a.fence()
}

// precheck is Prepare for a new attempt, whose key cannot have been cancelled.
func (a *Attempt) precheck() (*Outcome, error) {
	if err := a.exhausted(); err != nil {
		return a.End(nil, err)
	}
	return a.fence()
}
