package semel

import (
	"context"
	"errors"
	"time"

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
		return invalid("Retry.MaxErrors", "is negative")
	case r.MaxCrashes < 0:
		return invalid("Retry.MaxCrashes", "is negative")
	case r.DeadLetterRetention < 0:
		return invalid("Retry.DeadLetterRetention", "is negative: "+r.DeadLetterRetention.String())
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
	if own, ok := delayOf(err); ok {
		return own
	}
	return max(r.Delay(errors), 0)
}

// snoozeError is the error of Snooze. It is proof that nothing was done.
type snoozeError struct{ after time.Duration }

func (e *snoozeError) Error() string { return "semel: snoozed for " + e.after.String() }

// Snooze returns the error of a function that has done nothing and wants to run
// again after d. It is proof, as [NotCommitted] is, and counts neither as an error
// nor as a crash. Without [Retry] it is only that proof. It is about its own
// operation only: an outer function that returns this error does not run again
// because of it.
func Snooze(d time.Duration) error {
	return NotCommitted(&snoozeError{after: max(d, 0)})
}

// delayedError is an error with a delay of its own.
type delayedError struct {
	error

	after time.Duration
}

func (e *delayedError) Unwrap() error { return e.error }

// RetryIn returns err with the delay of the next attempt, in place of the
// operation's Retry.Delay. It says nothing about the effect: mark err for that. Nil
// stays nil. It is about its own operation only, as NotCommitted is.
func RetryIn(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &delayedError{err, max(d, 0)}
}

func delayOf(err error) (time.Duration, bool) {
	if d, ok := errors.AsType[*delayedError](err); ok {
		return d.after, true
	}
	return 0, false
}

// ErrCancelled is the cause of the cancelled context of a function whose key was
// cancelled while it ran.
var ErrCancelled = errors.New("semel: cancelled")

// cancelledError is ErrCancelled with its reason, for one attempt. The contexts of
// inner operations end with it, too; their keys were not cancelled.
type cancelledError struct {
	of     *Attempt // nil: no attempt was running
	reason string
}

func (e *cancelledError) Error() string        { return ErrCancelled.Error() + ": " + e.reason }
func (e *cancelledError) Is(target error) bool { return target == ErrCancelled }

// interrupted reports whether an attempt ended because of its circumstances: the
// store did not answer, or the process is stopping. Its error is then not counted.
// A timeout of the attempt itself is counted, and so is a commit that the store
// refused because of the function's writes. A transaction that was interrupted
// while the function ran is counted as well, because the function may have caused
// the interruption, and would then cause it every time.
func interrupted(ctx context.Context, err error) bool {
	tx, ok := errors.AsType[*txError](err)
	switch {
	case ok && !tx.ran:
		return true
	case ok && !errors.Is(tx.err, store.ErrInterrupted):
		return false
	}
	return ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) && !lostOwnLease(ctx)
}

// leaseLostError is ErrLeaseLost for one attempt. The contexts of inner operations
// end with it, too; their leases are not lost.
type leaseLostError struct {
	of  *Attempt
	why string
}

func (e *leaseLostError) Error() string        { return ErrLeaseLost.Error() + ": " + e.why }
func (e *leaseLostError) Is(target error) bool { return target == ErrLeaseLost }

// lostOwnLease reports whether ctx ended because its own attempt lost its lease.
func lostOwnLease(ctx context.Context) bool {
	lost, ok := errors.AsType[*leaseLostError](context.Cause(ctx))
	a, _ := AttemptOf(ctx)
	return ok && lost.of == a
}
