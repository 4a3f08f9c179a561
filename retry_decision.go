package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
)

// tried makes of the end of an attempt, which err led to, what the operation's
// Retry says: another attempt, later, or the end of all. e says whether it is
// proven that nothing was committed.
func (a *Attempt) decideRetry(e *event, err error) {
	before, _ := ProgressOf(a.Record())
	p, f, delay := a.call.op.retry.decide(a.ctx, before, a.token.Attempt, err)
	if f != nil {
		a.endForGood(e, p, f, err)
		return
	}
	e.outcome, e.delay = a.c.progress(p, a.call.op, a.call.id), delay
}

// cancelled returns what the attempt's key was cancelled with while it ran, or nil.
func (a *Attempt) cancelled() *cancelledError {
	why, _ := errors.AsType[*cancelledError](context.Cause(a.ctx))
	if why == nil || why.of != a {
		return nil // an attempt that called this one was cancelled, and not its key
	}
	return why
}

// cancelledEnd ends the record of an attempt whose key was cancelled and that did
// not succeed, whatever else its function says.
func (a *Attempt) cancelledEnd(e *event, why *cancelledError) {
	before, _ := ProgressOf(a.Record())
	p := before.with(a.token.Attempt, TryInterrupted, why)
	a.endForGood(e, p, p.failure(codeCancelled, why.reason), why)
}

// after says what comes after an attempt that ended with err: the progress it
// makes, and either the failure that ends all or how long the next one waits.
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

// afterInterruption is no time at all when it is only this process that ends.
func (r *Retry) afterInterruption(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	return max(r.Delay(1), 0)
}

// over ends the record for good, as err has it: Failed on proof, for all of its
// attempts, and otherwise in doubt, with what is known of them.
func (a *Attempt) endForGood(e *event, p Progress, f *Failure, err error) {
	inDoubt := e.step != stepRelease || a.tainted() && !a.speaksForAll(err)
	switch {
	case inDoubt && f.Code == codeExhausted && a.policy.runsAgain():
		e.step, e.outcome = stepDoubt, encodeDeadLetter(f, a.c.caps.MaxOutcome)
	case inDoubt:
		e.step, e.outcome = stepDoubt, a.c.progress(p, a.call.op, a.call.id)
	case f.Code == codeExhausted:
		e.step = stepFail
		a.call.op.retry.deadLetter(e, f, a.c.caps.MaxOutcome)
	default:
		e.step, e.outcome = stepFail, encodeFailure(f, a.c.caps.MaxOutcome)
	}
}

// deadLetter makes of e the end that leaves a dead letter, because of err.
func (r *Retry) deadLetter(e *event, err error, limit int) {
	e.outcome, e.expire = encodeDeadLetter(err, limit), r.DeadLetterRetention
}

// rejects reports whether a failure that the operation's own function has made final
// leaves a dead letter: a message is then rejected, and no caller reads the failure.
func (o *operation) rejects() bool { return o.retry != nil && o.retry.Redelivered }

// speaksForAll tells whether err, which proves that this attempt had no effect,
// proves it of the earlier ones too. That is the receiver's word only: an attempt
// that did not get to ask the receiver speaks for itself.
func (a *Attempt) speaksForAll(err error) bool {
	_, snoozed := errors.AsType[*snoozeError](err)
	_, cancelled := errors.AsType[*cancelledError](err)
	_, spent := errors.AsType[*exhaustedError](err)
	_, unread := errors.AsType[*inputError](err)
	return a.policy.speaksForAll() && !snoozed && !cancelled && !spent && !unread
}

// interruption is what is kept of an attempt that is taken back because the store
// did not answer: it is not to count as a crash.
func (c *Core) interruption(op *operation, current store.Record, attempt uint32, cause error) []byte {
	p, _ := ProgressOf(current)
	if op.retry == nil {
		p = p.countEnd()
	} else {
		p = p.with(attempt, TryInterrupted, cause)
	}
	return c.progress(p, op, current.ID)
}

// progress is p as it is stored in a record that is not final, with the retention of its
// operation.
func (c *Core) progress(p Progress, op *operation, id store.ID) []byte {
	p.Retention = c.options.timesOf(op, id).retention
	return p.encode(c.caps.MaxOutcome)
}

// spentError says that an attempt was not run, because too many before it have
// ended without a word.
type exhaustedError struct{ crashes int }

func (e *exhaustedError) Error() string { return "semel: " + tooManyCrashes(e.crashes) }

// spent returns, before the function of attempt n is run on what stands or was
// claimed, why it is not to be.
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

// spent is that of the operation, of what was claimed.
func (a *Attempt) exhausted() error {
	if a.call.op.retry == nil { // and the record need not be made
		return nil
	}
	return a.call.op.exhausted(a.Record(), a.token.Attempt)
}

// spentEnd is how an attempt ends that was not run: its own word is proof for
// itself, and for the earlier ones only where none of them can have committed.
func (a *Attempt) endExhausted(e *event, spent *exhaustedError) {
	e.step, e.proven = stepRelease, true
	if a.tainted() {
		e.step, e.proven = stepDoubt, false
	}
	before, _ := ProgressOf(a.Record())
	p, f, _ := a.call.op.retry.decide(a.ctx, before, a.token.Attempt, spent)
	a.endForGood(e, p, f, spent)
}

// Ready does what comes before the function of an attempt that [Core.Dequeue]
// gave: it ends one whose operation has crashed too often, or whose key was
// cancelled, and raises the fence and looks behind it under [Fenced]. When it
// returns an outcome or an error, the attempt has ended and its function must not
// be run.
func (a *Attempt) Prepare() (*Outcome, error) {
	if err := a.exhausted(); err != nil {
		return a.End(nil, err)
	}
	if why := a.cancelled(); why != nil {
		return a.End(nil, NotCommitted(why))
	}
	return a.fence()
}

// fit is Ready of an attempt that was just begun: nobody can have cancelled it.
func (a *Attempt) precheck() (*Outcome, error) {
	if err := a.exhausted(); err != nil {
		return a.End(nil, err)
	}
	return a.fence()
}
