package inbox

import (
	"errors"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// minAfter is the minimum redelivery delay. It keeps a broker without delays
// from redelivering in a tight loop.
const minAfter = 100 * time.Millisecond

// decide translates the result of a call into the decision for the consumer.
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
		// The message was handled. Whether its reply was ever sent is unknown.
		r.Decision, r.Duplicate = Reject, true
	default:
		r.After = max(semel.RetryAfter(err), minAfter)
	}
	return r
}

// decideFailed decides about a delivery whose own handler failed.
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

// isUnreadable reports whether the message itself is invalid, in contrast to a
// wrong call of the inbox.
func isUnreadable(err error) bool {
	field, ok := errtype.Find[*semel.FieldError](err)
	return ok && (field.Field == "Key" || field.Field == "Input")
}

// redeliveryDelay returns the delay before the redelivery of a message whose
// handler failed: the delay in its record, or one second without a record.
func redeliveryDelay(attempt *semel.AttemptError) time.Duration {
	if attempt.State == store.Pending {
		return semel.RetryAfter(attempt)
	}
	return max(semel.RetryAfter(attempt), time.Second)
}
