package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// Retry defines how an operation is retried whose keys the system owns: tasks and
// messages, whose callers do not wait for an answer. It applies to every attempt of
// the operation. The zero value has good defaults.
type Retry struct {
	// MaxErrors is how many attempts may end in an error. Then the record becomes
	// Failed, or InDoubt if an effect is possible. A transaction that is
	// interrupted while the function runs counts as an error, and so does a timeout
	// of the attempt. An unavailable store and the end of the process do not count.
	// Zero: 10.
	MaxErrors int
	// MaxCrashes is how many attempts may crash, counted apart from the errors. An
	// attempt that is a single transaction leaves nothing after a crash, so it is
	// not counted. Zero: 3.
	MaxCrashes int
	// DeadLetterRetention is how long a dead letter that has Failed is kept. Zero:
	// for ever, until an operator handles it. A dead letter that is InDoubt is
	// never purged. The operation's Retention does not apply to dead letters.
	DeadLetterRetention time.Duration
	// Redelivered means that the caller retries by itself, as a broker redelivers a
	// message. The record then does not store the input, no worker runs it, and it
	// cannot be enqueued. Without Redelivered, a call that has not ended, enqueued
	// or direct, is continued by a worker with its stored input.
	Redelivered bool
	// Delay returns the delay of the next attempt after n errors. Nil: exponential
	// backoff with jitter: a second, doubled with each error, at most an hour,
	// times a random factor of one half to one and a half.
	Delay func(errors int) time.Duration
}

// valid sets the defaults of r and returns what is wrong with it, naming the field.
func (r *Retry) valid() error {
	switch {
	case r.MaxErrors < 0:
		return callerr.Invalid("Retry.MaxErrors", "is negative")
	case r.MaxCrashes < 0:
		return callerr.Invalid("Retry.MaxCrashes", "is negative")
	case r.DeadLetterRetention < 0:
		return callerr.Invalid("Retry.DeadLetterRetention", "is negative: "+r.DeadLetterRetention.String())
	}
	setDefault(&r.MaxErrors, 10)
	setDefault(&r.MaxCrashes, 3)
	if r.Delay == nil {
		r.Delay = exponentialDelay
	}
	return nil
}

// exponentialDelay is the default of Delay.
func exponentialDelay(errors int) time.Duration {
	return jitter(min(time.Second<<min(max(errors-1, 0), 12), time.Hour))
}

// delay returns the delay of the next attempt after err, the n-th error.
func (r *Retry) delay(err error, errors int) time.Duration {
	if own, ok := callerr.DelayOf(err); ok {
		return own
	}
	return max(r.Delay(errors), 0)
}

// interrupted reports whether an attempt ended because of its circumstances: the
// store did not answer, or the process is stopping. Its error is then not counted.
// A timeout of the attempt itself is counted, and so is a commit that the store
// refused because of the function's writes. A transaction that was interrupted
// while the function ran is counted as well, because the function may have caused
// the interruption, and would then cause it every time.
func interrupted(ctx context.Context, err error) bool {
	tx, ok := errors.AsType[*callerr.TxError](err)
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
	lost, ok := errors.AsType[*callerr.LeaseLostError](context.Cause(ctx))
	a, _ := AttemptOf(ctx)
	return ok && lost.Of == a
}
