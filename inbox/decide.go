package inbox

import (
	"errors"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// minAfter keeps a broker without delays from delivering in a tight loop.
const minAfter = 100 * time.Millisecond

// decide makes of what a call came back with what the consumer is to do.
func decide(c semel.Call, replayed bool, err error) Result {
	r := Result{ID: c.ID(), Err: err}
	var attempt *semel.AttemptError
	var failure *semel.Failure
	switch {
	case err == nil:
		r.Decision, r.Duplicate = Ack, replayed
	case errors.As(err, &attempt):
		decideFailed(attempt, &r)
	case errors.As(err, &failure):
		r.Decision, r.Poisoned, r.Duplicate = Reject, true, semel.Replayed(err)
	case errors.Is(err, semel.ErrInDoubt):
		r.Decision, r.InDoubt = Reject, true
	case errors.Is(err, semel.ErrMismatch), errors.Is(err, semel.ErrKeyExpired), isUnreadable(err):
		r.Decision = Reject
	case errors.Is(err, semel.ErrResultUnavailable):
		// It was handled. Whether its reply was ever sent, nobody can tell.
		r.Decision, r.Duplicate = Reject, true
	default:
		r.After = max(semel.RetryAfter(err), minAfter)
	}
	return r
}

// decideFailed is for a delivery whose own handler failed.
func decideFailed(attempt *semel.AttemptError, r *Result) {
	switch {
	case attempt.Verdict == store.Committed:
		r.Decision = Ack
	case attempt.State == store.InDoubt, errors.Is(attempt, store.ErrTxEndedByHandler):
		r.Decision, r.InDoubt = Reject, true
	default:
		r.After = max(redeliveryDelay(attempt), minAfter)
	}
}

// isUnreadable tells whether the message itself is what is wrong, and not how the
// inbox was called.
func isUnreadable(err error) bool {
	field, ok := errors.AsType[*semel.FieldError](err)
	return ok && (field.Field == "Key" || field.Field == "Input")
}

// redeliveryDelay is how long a message stays away that its handler failed on: as its record
// says, or for a second where there is none.
func redeliveryDelay(attempt *semel.AttemptError) time.Duration {
	if attempt.State == store.Pending {
		return semel.RetryAfter(attempt)
	}
	return max(semel.RetryAfter(attempt), time.Second)
}
