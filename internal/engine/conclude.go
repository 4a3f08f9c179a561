package engine

import (
	"context"
	"errors"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// attemptEnd is what is known about an attempt when it ends, and what may be stored.
type attemptEnd struct {
	protocol.Ending

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
	end := attemptEnd{Ending: a.right.ending(), result: result}
	if err != nil {
		end = endingOf(a, err)
	}
	if end.NeedsProbe() {
		end.result = a.evidence(ctx)
		end.Evidence = end.result != nil
	}
	c := protocol.Conclude(end.Ending)
	e.Step, e.To, e.Proven, e.Delay = c.Step, c.To, c.Proven, end.delay
	switch limit := a.c.caps.MaxOutcome; c.Payload {
	case protocol.Result:
		e.Outcome = end.result
	case protocol.Failure:
		e.Outcome = codec.EncodeFailure(end.failure, limit)
	case protocol.DeadLetter:
		e.Outcome, e.Expire = codec.EncodeDeadLetter(end.failure, limit), a.call.op.retry.DeadLetterRetention
	case protocol.Progress:
		e.Outcome = a.c.progress(end.progress, a.call.op, a.call.id)
	case protocol.NoPayload:
	}
	return c.Step != ""
}

// endingOf describes the end of the attempt with err.
func endingOf(a *Attempt, err error) (e attemptEnd) {
	op, before := a.call.op, a.Record()
	e.Ending = a.right.ending()
	e.ResultsOnly = op.generation > 0
	e.Cause, e.failure = protocol.ByError, err
	e.Proven, e.Final = op.proof(err, a.right.rolledBack())
	e.Answered = isAnswered(err)
	if _, crashed := errtype.Find[*callerr.ExhaustedError](err); crashed {
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
		kind := codec.TryError
		if interrupted(a.ctx, err) {
			kind = codec.TryInterrupted
		}
		e.progress = p.CountEnd().Add(a.token.Attempt, kind, err)
		return
	}
	if p.Trace == nil && !retry.Redelivered { // a worker goes on with a call that was not enqueued
		p.Trace = InjectTrace(a.ctx, a.c)
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

// result encodes v, unless the function returned err. If v cannot be stored, the
// outcome is a tombstone: the operation must not run again because of its result.
func (a *Attempt) result(ctx context.Context, v any, err error) []byte {
	if err != nil {
		return nil
	}
	e, why := a.c.outcome(v)
	a.lossless = e.Lossless || why != nil // a tombstone cannot be decoded, so the caller keeps its own value
	switch {
	case why != nil:
		a.emit(ctx, event.Tombstone, a.Record(), why)
	case e.Altered != nil:
		a.emit(ctx, event.Altered, a.Record(), e.Altered)
	}
	return e.Outcome
}

// outcome encodes a result. If the outcome is a tombstone, why says what is wrong
// with the result.
func (c *Core) outcome(v any) (e codec.Encoded, why error) {
	v = codec.ResultOf(v)
	if t, ok := v.(codec.Tombstone); ok {
		return codec.Encoded{Outcome: codec.EncodeTombstone(codec.Cut(string(t), 200))}, errTombstone
	}
	e, why = codec.EncodeResult(v)
	switch {
	case why != nil:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result cannot be stored: " + codec.Cut(why.Error(), 200))}, why
	case len(e.Outcome) > c.caps.MaxOutcome:
		return codec.Encoded{Outcome: codec.EncodeTombstone("the result is larger than the store keeps")}, errTooLarge
	default:
		return e, nil
	}
}

var (
	errTooLarge  = errors.New("semel: the result is larger than the store keeps")
	errTombstone = errors.New("semel: the adapter cannot return the result again")
)

// evidence probes for the effect of an attempt whose effect is unknown.
func (a *Attempt) evidence(ctx context.Context) []byte {
	ctx, cancel := a.c.bounded(ctx)
	defer cancel()
	outcome, err := a.c.evidence(ctx, a.call.op, a.Record())
	if err != nil {
		a.emit(ctx, event.StoreError, a.Record(), err)
	}
	return outcome
}

// evidence calls the operation's probe and returns the outcome that it found, or
// nil.
func (c *Core) evidence(ctx context.Context, op *operation, current store.Record) ([]byte, error) {
	result, found, err := op.policy.probe(ctx, Scope{text: current.Scope}, current.Key)
	if err != nil || !found {
		return nil, err
	}
	e, _ := c.outcome(result)
	return e.Outcome, nil
}

// cancelled returns the cancellation of the attempt's key, or nil.
func (a *Attempt) cancelled() *callerr.CancelledError {
	why, _ := errtype.Find[*callerr.CancelledError](context.Cause(a.ctx))
	if why == nil || why.Of != a {
		return nil // the context of an outer attempt was cancelled
	}
	return why
}

// decide returns the progress after an attempt that ended with err, and either the
// final failure or the delay of the next attempt.
func (r *Retry) decide(ctx context.Context, p codec.Progress, attempt uint32, err error) (codec.Progress, *callerr.Failure, time.Duration) {
	if s, ok := errtype.Find[*callerr.SnoozeError](err); ok {
		return p.With(attempt, codec.TrySnooze, nil), nil, s.After
	}
	if spent, ok := errtype.Find[*callerr.ExhaustedError](err); ok {
		p = p.With(attempt, codec.TryInterrupted, spent)
		return p, p.Failure(codec.CodeExhausted, codec.TooManyCrashes(spent.Crashes)), r.delay(err, r.MaxErrors)
	}
	if interrupted(ctx, err) {
		return p.With(attempt, codec.TryInterrupted, err), nil, r.afterInterruption(ctx)
	}
	p = p.With(attempt, codec.TryError, err)
	if p.Errors >= r.MaxErrors {
		return p, p.Failure(codec.CodeExhausted, codec.TooManyErrors(err)), r.delay(err, p.Errors)
	}
	return p, nil, r.delay(err, p.Errors)
}

// afterInterruption returns no delay if only this process is ending.
func (r *Retry) afterInterruption(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	return max(r.Delay(1), 0)
}

// interruption is the progress of an attempt that is released because the store did
// not answer. It does not count as a crash.
func (c *Core) interruption(op *operation, current store.Record, attempt uint32, cause error) []byte {
	p, _ := codec.ProgressOf(current)
	if op.retry == nil {
		p = p.CountEnd()
	} else {
		p = p.With(attempt, codec.TryInterrupted, cause)
	}
	return c.progress(p, op, current.ID)
}

// progress encodes p for a record that is not final, with the operation's
// retention.
func (c *Core) progress(p codec.Progress, op *operation, id store.ID) []byte {
	p.Retention = c.options.timesOf(op, id).Retention
	return p.Encode(c.caps.MaxOutcome)
}

// exhausted returns an error if attempt n must not run on a record, because too many
// attempts before it crashed. Without a record there were none.
func (o *operation) exhausted(found *store.Record, n uint32) error {
	if o.retry == nil || found == nil {
		return nil
	}
	p, _ := codec.ProgressOf(*found)
	if crashes := p.Crashes(n); crashes >= o.retry.MaxCrashes {
		return &callerr.ExhaustedError{Crashes: crashes}
	}
	return nil
}

// interrupted reports whether an attempt ended because of its circumstances: the
// store did not answer, or the process is stopping. Its error is then not counted.
// A timeout of the attempt itself is counted, and so is a commit that the store
// refused because of the function's writes. A transaction that was interrupted
// while the function ran is counted as well, because the function may have caused
// the interruption, and would then cause it every time.
func interrupted(ctx context.Context, err error) bool {
	tx, ok := errtype.Find[*callerr.TxError](err)
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
	lost, ok := errtype.Find[*callerr.LeaseLostError](context.Cause(ctx))
	a, _ := AttemptOf(ctx)
	return ok && lost.Of == a
}

// crashed returns the progress after the lease of an attempt has expired.
func (c *Core) crashed(op *operation, r store.Record) []byte {
	p, _ := codec.ProgressOf(r)
	return c.progress(p.With(r.Attempt, codec.TryCrash, nil), op, r.ID)
}
