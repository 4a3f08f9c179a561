package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/store"
)

// Retry says how an operation is tried again whose keys the system owns: tasks
// and messages, which nobody waits for and comes back to ask. It goes for every
// attempt of such an operation, whoever makes it. The zero value is good.
type Retry struct {
	// MaxErrors is how many attempts may end in an error; then the record is
	// Failed, or InDoubt where nobody knows what they did. A transaction that is
	// broken off while the function runs is one, and so is the end of the time that
	// the attempt has; a store that does not answer otherwise, or the end of the
	// process, is none. Zero: 10.
	MaxErrors int
	// MaxCrashes is how many attempts may end without a word, because their
	// process died; counted apart from the errors. Of one that is a single
	// transaction nothing is left then, so it is not counted. Zero: 3.
	MaxCrashes int
	// DeadLetterRetention is how long a dead letter that has Failed is kept: one
	// whose attempts are used up, or a message that its consumer rejected. Zero: for
	// ever, until an operator handles it. A dead letter that is InDoubt is never
	// removed. The operation's Retention does not apply to dead letters.
	DeadLetterRetention time.Duration
	// Redelivered says that whoever asks will ask again by itself, as a broker
	// delivers a message again: the record does not keep the input, no worker
	// looks for it, and it is not to be enqueued. Without it a call that does not
	// end, enqueued or direct, is left for a worker to go on with, input and all.
	Redelivered bool
	// Delay is how long to stay away after that many errors. Nil: a second,
	// doubled with each error, at most an hour, spread over half to one and a
	// half of that.
	Delay func(errors int) time.Duration
}

// valid returns what is wrong with r, naming the field, once its defaults are set.
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

// delayDoubled is the delay of a Retry that names none.
func exponentialDelay(errors int) time.Duration {
	return jitter(min(time.Second<<min(max(errors-1, 0), 12), time.Hour))
}

// delay is how long the next attempt waits after err, the errors-th of its kind.
func (r *Retry) delay(err error, errors int) time.Duration {
	if own, ok := delayOf(err); ok {
		return own
	}
	return max(r.Delay(errors), 0)
}

// snoozeError asks to come back later. It says that nothing was done.
type snoozeError struct{ after time.Duration }

func (e *snoozeError) Error() string { return "semel: to be run again in " + e.after.String() }

// Snooze returns the error of a function that has done nothing and asks to be
// run again after d. It is proof, as [NotCommitted] is, and counts neither as an
// error nor as a crash. Of an operation without [Retry] it is only that proof. It
// speaks about its own operation only: an outer function that returns the error of the
// call is not run again because of it.
func Snooze(d time.Duration) error {
	return NotCommitted(&snoozeError{after: max(d, 0)})
}

// delayedError is an error with its own delay.
type delayedError struct {
	error

	after time.Duration
}

func (e *delayedError) Unwrap() error { return e.error }

// RetryIn returns err with the time the next attempt is to wait, instead of the
// operation's Retry.Delay. It says nothing about the effect: mark err for that.
// Nil stays nil. It speaks about its own operation only, as NotCommitted does.
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

// ErrCancelled is the cause of the cancelled context that a function sees whose
// key was cancelled while it ran.
var ErrCancelled = errors.New("semel: cancelled")

// cancelledError is ErrCancelled with the reason that was given, for one attempt. The
// contexts of operations that the attempt calls end with it too; they are not cancelled.
type cancelledError struct {
	of     *Attempt // nil: no attempt was running
	reason string
}

func (e *cancelledError) Error() string        { return ErrCancelled.Error() + ": " + e.reason }
func (e *cancelledError) Is(target error) bool { return target == ErrCancelled }

// interrupted tells whether an attempt was ended by what surrounds it and not by
// the operation, so that its error is not to be counted: the store did not take
// part, or the process is being stopped. A limit of the attempt's own time is no such
// thing, nor is a commit that the store refused for what the function wrote. A
// transaction that was broken off while the function ran counts: nobody can tell
// whether the function brought that about, and if it does, it does so every time.
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

// leaseLostError is ErrLeaseLost as the cause of the context of one attempt. The contexts
// of operations that the attempt calls end with it too; their leases are not lost.
type leaseLostError struct {
	of  *Attempt
	why string
}

func (e *leaseLostError) Error() string        { return ErrLeaseLost.Error() + ": " + e.why }
func (e *leaseLostError) Is(target error) bool { return target == ErrLeaseLost }

// lostOwnLease reports whether ctx ended because the attempt that it belongs to lost its
// lease.
func lostOwnLease(ctx context.Context) bool {
	lost, ok := errors.AsType[*leaseLostError](context.Cause(ctx))
	a, _ := AttemptOf(ctx)
	return ok && lost.of == a
}
