package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
)

// cancelled returns the cancellation of the attempt's key, or nil.
func (a *Attempt) cancelled() *cancelledError {
	why, _ := errors.AsType[*cancelledError](context.Cause(a.ctx))
	if why == nil || why.of != a {
		return nil // the context of an outer attempt was cancelled
	}
	return why
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
