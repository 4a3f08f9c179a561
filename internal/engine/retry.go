package engine

import (
	"time"

	"github.com/semelgo/semel/internal/callerr"
)

// Retry defines how an operation is retried whose keys the system owns: tasks and
// messages, whose callers do not wait for an answer.
type Retry struct {
	MaxErrors           int
	MaxCrashes          int
	DeadLetterRetention time.Duration
	Redelivered         bool
	Delay               func(errors int) time.Duration
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
