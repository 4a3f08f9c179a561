package semel

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// attemptEnd is what is known about an attempt when it ends, and what may be stored.
type attemptEnd struct {
	protocol.Ending

	op *operation
	id store.ID

	progress Progress      // after the attempt
	failure  error         // of a failure or a dead letter
	delay    time.Duration // of the next attempt
	result   []byte        // encoded
}

// endingOf describes attempt n, which found the record before and ended with err.
// rolledBack means that every effect of the attempt was in a transaction that did
// not commit. ctx is the context of its function.
func (c *Core) endingOf(ctx context.Context, call *Call, before *store.Record, n uint32, err error, rolledBack bool) (e attemptEnd) {
	e.op, e.id = call.op, call.id
	e.Tainted = before.Tainted
	e.ResultsOnly = call.op.generation > 0
	e.Cause, e.failure = protocol.ByError, err
	e.Proven, e.Final = call.op.proof(err, rolledBack)
	e.Answered = isAnswered(err)
	if _, crashed := errors.AsType[*exhaustedError](err); crashed {
		e.Cause = protocol.ByCrashes
	}
	p, _ := ProgressOf(*before)
	if call.op.retry == nil {
		e.progress = p.countEnd()
		return e
	}
	var exhausted *Failure
	e.Retry, e.Redelivered = protocol.RetryLater, call.op.retry.Redelivered
	if e.progress, exhausted, e.delay = call.op.retry.decide(ctx, p, n, err); exhausted != nil {
		e.Retry = protocol.RetriesExhausted
	}
	if exhausted != nil && !e.Final {
		e.failure = exhausted
	}
	return e
}

// cancel makes e the ending of an attempt whose key was cancelled and whose function
// returned an error, which does not matter any more.
func (e *attemptEnd) cancel(before *store.Record, n uint32, why *cancelledError) {
	p, _ := ProgressOf(*before)
	e.Cause, e.progress = protocol.ByCancellation, p.with(n, TryInterrupted, why)
	e.failure = e.progress.failure(codeCancelled, why.reason)
}

// conclude sets the step and the outcome of to, as the protocol concludes from e. It
// returns false if nothing is to be written.
func (c *Core) conclude(e *attemptEnd, to *protocol.Event) bool {
	end := protocol.Conclude(e.Ending)
	to.Step, to.To, to.Proven = end.Step, end.To, end.Proven
	to.Delay = e.delay
	switch end.Payload {
	case protocol.Result:
		to.Outcome = e.result
	case protocol.Failure:
		to.Outcome = encodeFailure(e.failure, c.caps.MaxOutcome)
	case protocol.DeadLetter:
		to.Outcome, to.Expire = encodeDeadLetter(e.failure, c.caps.MaxOutcome), e.op.retry.DeadLetterRetention
	case protocol.Progress:
		to.Outcome = c.progress(e.progress, e.op, e.id)
	case protocol.NoPayload:
	}
	return end.Step != ""
}

// proof reports whether err proves that the attempt had no effect, and whether the
// failure is then stored.
func (o *operation) proof(err error, rolledBack bool) (proven, final bool) {
	_, fence := errors.AsType[*fenceError](err)
	_, crashed := errors.AsType[*exhaustedError](err)
	if fence || crashed || errors.Is(err, errAbandoned) || err == errNotCommitted { //nolint:errorlint // the last is never wrapped
		return rolledBack, false // the operation itself has not answered
	}
	mark, marked := errors.AsType[*markedError](err)
	proven = marked || rolledBack
	if !proven && o.classify != nil {
		proven = o.classify(err) == store.NotCommitted
	}
	if marked && mark.keep {
		return true, true
	}
	return proven, proven && o.onError == Keep && !isTransient(err)
}

// isTransient reports whether err comes from the circumstances of the attempt, such
// as a lost lease or a cancelled context. Such an error is not the operation's
// answer and is never stored.
func isTransient(err error) bool {
	_, infrastructure := errors.AsType[*txError](err)
	_, snoozed := errors.AsType[*snoozeError](err)
	return infrastructure || snoozed || isOwn(err, ErrLeaseLost) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// isAnswered reports whether err can be an answer of the receiver of the effect. An
// attempt that did not send its request has none.
func isAnswered(err error) bool {
	_, snoozed := errors.AsType[*snoozeError](err)
	_, cancelled := errors.AsType[*cancelledError](err)
	_, crashed := errors.AsType[*exhaustedError](err)
	_, unread := errors.AsType[*inputError](err)
	return !snoozed && !cancelled && !crashed && !unread
}
