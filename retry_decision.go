package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/store"
)

// cancelled returns the cancellation of the attempt's key, or nil.
func (a *Attempt) cancelled() *callerr.CancelledError {
	why, _ := errors.AsType[*callerr.CancelledError](context.Cause(a.ctx))
	if why == nil || why.Of != a {
		return nil // the context of an outer attempt was cancelled
	}
	return why
}

// decide returns the progress after an attempt that ended with err, and either the
// final failure or the delay of the next attempt.
func (r *Retry) decide(ctx context.Context, p codec.Progress, attempt uint32, err error) (codec.Progress, *callerr.Failure, time.Duration) {
	if s, ok := errors.AsType[*callerr.SnoozeError](err); ok {
		return p.With(attempt, codec.TrySnooze, nil), nil, s.After
	}
	if spent, ok := errors.AsType[*callerr.ExhaustedError](err); ok {
		p = p.With(attempt, codec.TryInterrupted, spent)
		return p, p.Failure(codec.CodeExhausted, codec.TooManyCrashes(spent.Crashes)), r.delay(err, r.MaxErrors)
	}
	if interrupted(ctx, err) {
		return p.With(attempt, codec.TryInterrupted, err), nil, r.afterInterruption(ctx)
	}
	p = p.With(attempt, codec.TryError, err)
	if p.Errors >= r.MaxErrors {
		return p, p.Failure(codec.CodeExhausted, codec.TooManyErrors(err)), r.delay(err, p.Errors)
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
	p, _ := codec.ProgressOf(current)
	if op.retry == nil {
		p = p.CountEnd()
	} else {
		p = p.With(attempt, codec.TryInterrupted, cause)
	}
	return c.progress(p, op, current.ID)
}

// progress encodes p for a record that is not final, with the operation's
// retention.
func (c *Core) progress(p codec.Progress, op *operation, id store.ID) []byte {
	p.Retention = c.options.timesOf(op, id).retention
	return p.Encode(c.caps.MaxOutcome)
}

// exhausted returns an error if attempt n must not run, because too many attempts
// before it crashed.
func (o *operation) exhausted(r store.Record, n uint32) error {
	if o.retry == nil {
		return nil
	}
	p, _ := codec.ProgressOf(r)
	if crashes := p.Crashes(n); crashes >= o.retry.MaxCrashes {
		return &callerr.ExhaustedError{Crashes: crashes}
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
		return a.End(nil, callerr.NotCommitted(why))
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
