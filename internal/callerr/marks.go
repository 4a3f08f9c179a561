package callerr

import (
	"time"

	"github.com/semelgo/semel/internal/errtype"
)

// MarkedError is the error of NotCommitted and Final.
type MarkedError struct {
	err  error
	Keep bool
}

// Error returns the message.
func (e *MarkedError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *MarkedError) Unwrap() error { return e.err }

// NotCommitted marks err as proof that the attempt had no effect and will have
// none. Nil stays nil.
func NotCommitted(err error) error {
	if err == nil {
		return nil
	}
	return &MarkedError{err: err}
}

// Final marks err as NotCommitted does, and as the operation's answer. Nil stays nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &MarkedError{err: err, Keep: true}
}

// SnoozeError is the error of Snooze. It is proof that nothing was done.
type SnoozeError struct{ After time.Duration }

// Error returns the message.
func (e *SnoozeError) Error() string { return "semel: snoozed for " + e.After.String() }

// Snooze returns the error of a function that has done nothing and wants to run
// again after d.
func Snooze(d time.Duration) error {
	return NotCommitted(&SnoozeError{After: max(d, 0)})
}

// delayedError is an error with a delay of its own.
type delayedError struct {
	error

	after time.Duration
}

func (e *delayedError) Unwrap() error { return e.error }

// RetryIn returns err with the delay of the next attempt. Nil stays nil.
func RetryIn(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &delayedError{err, max(d, 0)}
}

// DelayOf returns the delay of RetryIn, if err has one.
func DelayOf(err error) (time.Duration, bool) {
	if d, ok := errtype.Find[*delayedError](err); ok {
		return d.after, true
	}
	return 0, false
}
