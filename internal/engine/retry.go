package engine

import (
	"time"

	"github.com/semelgo/semel/internal/callerr"
)

// Retry defines how an operation is retried whose keys the system owns: tasks and
// messages, whose callers do not wait for an answer.
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
