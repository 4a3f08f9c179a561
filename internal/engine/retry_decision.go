package engine

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// cancelled returns the cancellation of the attempt's key, or nil.
func (a *Attempt) cancelled() *callerr.CancelledError {
	why, _ := errtype.Find[*callerr.CancelledError](context.Cause(a.ctx))
	if why == nil || why.Of != a {
		return nil // the context of an outer attempt was cancelled
	}
	return why
}

// decide returns the progress after an attempt that ended with err, and either the
// final failure or the delay of the next attempt.
func (r *Retry) decide(ctx context.Context, p codec.Progress, attempt uint32, err error) (codec.Progress, *callerr.Failure, time.Duration) {
	if s, ok := errtype.Find[*callerr.SnoozeError](err); ok {
		return p.With(attempt, codec.TrySnooze, nil), nil, s.After
	}
	if spent, ok := errtype.Find[*callerr.ExhaustedError](err); ok {
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
	p.Retention = c.options.timesOf(op, id).Retention
	return p.Encode(c.caps.MaxOutcome)
}

// exhausted returns an error if attempt n must not run on a record, because too many
// attempts before it crashed. Without a record there were none.
func (o *operation) exhausted(found *store.Record, n uint32) error {
	if o.retry == nil || found == nil {
		return nil
	}
	p, _ := codec.ProgressOf(*found)
	if crashes := p.Crashes(n); crashes >= o.retry.MaxCrashes {
		return &callerr.ExhaustedError{Crashes: crashes}
	}
	return nil
}

// interrupted reports whether an attempt ended because of its circumstances: the
// store did not answer, or the process is stopping. Its error is then not counted.
// A timeout of the attempt itself is counted, and so is a commit that the store
// refused because of the function's writes. A transaction that was interrupted
// while the function ran is counted as well, because the function may have caused
// the interruption, and would then cause it every time.
func interrupted(ctx context.Context, err error) bool {
	tx, ok := errtype.Find[*callerr.TxError](err)
	switch {
	case ok && !tx.Ran:
		return true
	case ok && !errors.Is(tx.Err, store.ErrInterrupted):
		return false
	}
	return ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) && !lostOwnLease(ctx)
}

// lostOwnLease reports whether ctx ended because its own attempt lost its lease.
func lostOwnLease(ctx context.Context) bool {
	lost, ok := errtype.Find[*callerr.LeaseLostError](context.Cause(ctx))
	a, _ := AttemptOf(ctx)
	return ok && lost.Of == a
}

// crashed is the progress of an attempt whose lease has expired.
func (c *Core) crashed(op *operation, r store.Record) []byte {
	p, _ := codec.ProgressOf(r)
	return c.progress(p.With(r.Attempt, codec.TryCrash, nil), op, r.ID)
}
