package engine

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// attemptEnd is what is known about an attempt when it ends, and what may be stored.
type attemptEnd struct {
	protocol.Ending

	op *operation
	id store.ID

	progress codec.Progress // after the attempt
	failure  error          // of a failure or a dead letter
	delay    time.Duration  // of the next attempt
	result   []byte         // encoded
}

// endEvent makes e the event that ends the attempt after its
// function returned v, of which result is the encoded form, or err. It returns
// false if nothing is to be written.
func (a *Attempt) endEvent(ctx context.Context, e *protocol.Event, result []byte, err error) bool {
	*e = a.right.event()
	if err == nil {
		end := attemptEnd{Ending: a.right.ending(), result: result}
		end.Cause = protocol.ByResult
		return a.c.conclude(&end, e)
	}
	end := endingOf(a, err)
	if end.NeedsProbe() {
		end.result = a.evidence(ctx)
		end.Evidence = end.result != nil
	}
	return a.c.conclude(&end, e)
}

// endingOf describes the end of the attempt with err.
func endingOf(a *Attempt, err error) (e attemptEnd) {
	op, before := a.call.op, a.Record()
	e.op, e.id = op, a.call.id
	e.Ending = a.right.ending()
	e.ResultsOnly = op.generation > 0
	e.Cause, e.failure = protocol.ByError, err
	e.Proven, e.Final = op.proof(err, a.right.rolledBack())
	e.Answered = isAnswered(err)
	if _, crashed := errors.AsType[*callerr.ExhaustedError](err); crashed {
		e.Cause = protocol.ByCrashes
	}
	addRetry(a, &e, &before, err)
	if err == errWithoutTx { //nolint:errorlint // it is never wrapped
		e.Cause = protocol.OutsideTx
	} else if why := a.cancelled(); why != nil && e.Cause == protocol.ByError && !e.Final {
		e.cancel(&before, a.token.Attempt, why)
	}
	return e
}

// addRetry adds what the operation's [Retry] makes of err, and the progress.
func addRetry(a *Attempt, e *attemptEnd, before *store.Record, err error) {
	p, _ := codec.ProgressOf(*before)
	retry := a.call.op.retry
	if retry == nil {
		e.progress = p.CountEnd()
		return
	}
	var exhausted *callerr.Failure
	e.Retry, e.Redelivered = protocol.RetryLater, retry.Redelivered
	if e.progress, exhausted, e.delay = retry.decide(a.ctx, p, a.token.Attempt, err); exhausted != nil {
		e.Retry = protocol.RetriesExhausted
	}
	if exhausted != nil && !e.Final {
		e.failure = exhausted
	}
}

// cancel makes e the ending of an attempt whose key was cancelled and whose function
// returned an error, which does not matter any more.
func (e *attemptEnd) cancel(before *store.Record, n uint32, why *callerr.CancelledError) {
	p, _ := codec.ProgressOf(*before)
	e.Cause, e.progress = protocol.ByCancellation, p.With(n, codec.TryInterrupted, why)
	e.failure = e.progress.Failure(codec.CodeCancelled, why.Reason)
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
		to.Outcome = codec.EncodeFailure(e.failure, c.caps.MaxOutcome)
	case protocol.DeadLetter:
		to.Outcome, to.Expire = codec.EncodeDeadLetter(e.failure, c.caps.MaxOutcome), e.op.retry.DeadLetterRetention
	case protocol.Progress:
		to.Outcome = c.progress(e.progress, e.op, e.id)
	case protocol.NoPayload:
	}
	return end.Step != ""
}
