package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// inline runs an attempt as a single transaction: it takes the exclusive right to
// the record, runs the function, writes the final record once, and commits.
type inline struct {
	*claimer
	fn    func(ctx context.Context, tx any) (any, error)
	batch batchFunc // instead of fn
	lost  conflictCounter

	ran     bool            // the attempt had the right and fn was called
	answer  protocol.Answer // otherwise: why it did not run
	current store.Record    // the record at the begin of the transaction
	change  store.Change    // the last statement
	fnErr   error
	within  *txContext // of fn; nil: fn was not called in a transaction
}

// start begins an attempt that is a single transaction, based on current.
func (i *inline) start(current store.Record) {
	*i = inline{claimer: i.claimer, fn: i.fn, batch: i.batch, lost: i.lost}
	a := &i.attempt
	a.right, a.found = (*exclusive)(a), &i.current
	a.token = store.Token{State: store.InProgress, Owner: newOwner()}
	a.begun = clock.Now()
	i.setBase(current)
}

// setBase sets the record that the attempt replaces.
func (i *inline) setBase(current store.Record) {
	i.current, i.change = current, store.Change{}
	i.call.readIssue(&current)
	i.attempt.token.Attempt = current.Attempt + 1
}

// runInline runs fn, or the statements of batch, once as one transaction, or answers
// from the record.
func (c *Core) runInline(ctx context.Context, call Call, fn func(context.Context, any) (any, error), batch batchFunc) (out *Outcome, err error) {
	if err := c.admit(ctx, &call, protocol.Atomic); err != nil {
		return nil, err
	}
	defer c.leave()
	if out, known, err := c.fromCache(ctx, &call); known {
		return out, err
	}
	i := &inline{claimer: c.newClaimer(&call, call.op.policy.kind), fn: fn, batch: batch}
	defer i.releaseWaiter(ctx)
	if out, err := i.lead(ctx); out != nil || err != nil {
		return out, err
	}
	current, told := store.Record{}, callerr.ErrAbandoned
	id := i.call.id // the ID changes with the generation
	defer func() {  // also on a panic, with the transaction rolled back
		c.inflight.finish(id, i.attempt.inflight, &current, told)
	}()
	asked := c.cache.Now()
	err = i.readFirst(ctx, &current)
	for err == nil {
		if protocol.AnswerTo(&current, protocol.SameRequest) == protocol.Replay {
			c.readHint.observe(true)
			i.cacheFinal(&current, asked)
			told = nil
			return c.answer(ctx, i.call, current)
		}
		i.start(current)
		var again bool
		current, out, again, err = i.run(ctx)
		if !again {
			c.readHint.observe(!i.ran)
			i.cacheFinal(&current, asked)
			break
		}
		current, err = i.nextTry(ctx)
	}
	told = errForFollowers(ctx, err)
	return out, err
}

// nextTry waits for the transaction or attempt that has the record, or reads the
// record that superseded this attempt.
func (i *inline) nextTry(ctx context.Context) (store.Record, error) {
	if i.answer == protocol.Wait {
		return i.wait(ctx, i.current)
	}
	return i.read(ctx)
}

// run runs one transaction. again means that nothing was run, or that it was rolled
// back because of another write.
func (i *inline) run(ctx context.Context) (now store.Record, out *Outcome, again bool, err error) {
	if limit := i.attempt.times.MaxRun; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: max run is over", callerr.ErrLeaseLost))
		defer cancel()
	}
	i.attempt.ctx = ctx
	kind := event.Released
	defer func() { i.attempt.traceEnd(kind, &now, err) }() // also on a panic
	verdict, err := i.transact(ctx)
	if i.within != nil {
		i.within.callAfter()
	}
	result := protocol.Classify(protocol.TxEnd{
		Verdict: verdict, Err: err, Called: i.ran, Failed: i.fnErr != nil, Stores: i.keepsFailure(),
	})
	if result == protocol.TxNotCalled && errors.Is(err, callerr.ErrNotRun) {
		if i.answer == protocol.Replay {
			kind = event.Replayed // a batch was built, and not sent
		}
		return i.refused(ctx)
	}
	if (result == protocol.TxConflict || result == protocol.TxSuperseded) && i.lost.retry(ctx, result) {
		if kind = event.Retried; result == protocol.TxSuperseded {
			kind = event.Fenced
		}
		i.attempt.emit(ctx, kind, i.current, err)
		return i.current, nil, true, nil
	}
	now, out, err = i.concluded(ctx, result, err)
	kind = "" // now and err say it
	if errors.Is(err, errPending) {
		if i.lost.retry(ctx, protocol.TxSuperseded) {
			return now, nil, true, nil
		}
		err = &callerr.WaitError{After: protocol.RetryAfter(now)}
	}
	return now, out, false, err
}

// errPending is the error of a transaction of which nothing was committed, because its
// record is Pending with another token.
var errPending = errors.New("semel: the record is pending again")

// concluded returns the answer of the transaction's end, or errPending.
func (i *inline) concluded(ctx context.Context, result protocol.TxResult, err error) (store.Record, *Outcome, error) {
	switch result {
	case protocol.TxCommitted:
		return i.committed(ctx, recordAfter(i.change, i.current))
	case protocol.TxCommittedByHandler:
		return i.committedByHandler(ctx, err)
	case protocol.TxEndedByHandler:
		return i.settled(ctx, i.attempt.endedByHandler(ctx, err))
	case protocol.TxUnknown:
		end := i.attempt.unknownCommit(ctx, &i.change, err)
		if end.superseded {
			i.attempt.emit(ctx, event.Fenced, end.current, err)
			return i.superseded(ctx, end.current)
		}
		return i.settled(ctx, end)
	case protocol.TxHandlerFailed:
		if i.keepsFailure() {
			return i.keepFailure(ctx)
		}
	case protocol.TxInterrupted, protocol.TxRolledBack:
		if i.countError(ctx, err) {
			return i.keepFailure(ctx)
		}
	case protocol.TxNotCalled:
		return i.current, nil, fmt.Errorf("%w: begin: %w", callerr.ErrUnavailable, err)
	case protocol.TxConflict, protocol.TxSuperseded, protocol.TxNoPartition:
	}
	return i.rolledBack(ctx, result, err)
}

// transact waits for its transaction only as long as its caller waits. After the
// begin only the function's own context counts.
func (i *inline) transact(ctx context.Context) (store.Verdict, error) {
	waiting, done := waitContext(ctx)
	defer done()
	if i.batch != nil {
		return i.send(ctx, waiting)
	}
	return i.c.atomic(waiting, i.call.id, !i.call.op.optimistic, func(_ context.Context, tx any, current store.SwapResult) (*store.Change, error) {
		return i.body(ctx, tx, current)
	})
}

// body runs inside the transaction.
func (i *inline) body(ctx context.Context, tx any, current store.SwapResult) (*store.Change, error) {
	i.setBase(recordOf(current))
	if current.Busy {
		i.answer = protocol.Wait
		return nil, callerr.ErrNotRun
	}
	if !i.mayRun(ctx) {
		return nil, callerr.ErrNotRun
	}
	if err := i.call.op.exhausted(&i.current, i.current.Attempt+1); err != nil {
		return i.functionFailed(ctx, err)
	}
	i.within = &txContext{Context: i.attempt.trace(ctx), call: *i.call, c: i.c, tx: tx}
	v, err := i.fn(i.within, tx) //nolint:contextcheck // a txContext inherits ctx
	if err != nil {
		return i.functionFailed(ctx, err)
	}
	i.succeed(ctx, v)
	if i.call.op.generation > 0 {
		if err := i.writeSuccessor(ctx, tx); err != nil {
			return nil, err
		}
	}
	return &i.change, nil
}

// succeed makes the change that stores the function's result.
func (i *inline) succeed(ctx context.Context, v any) {
	var e protocol.Event
	i.attempt.endEvent(ctx, &e, i.attempt.result(ctx, v, nil), nil)
	i.change = protocol.Next(i.current, e).Change
}

// mayRun reports whether the function may run on the current record. If not, it
// sets the answer.
func (i *inline) mayRun(ctx context.Context) bool {
	var e protocol.Event
	i.attempt.endEvent(ctx, &e, nil, nil)
	d := protocol.Next(i.current, e)
	if i.answer = d.Answer; d.Step == protocol.StepDoubt {
		i.change, i.answer = d.Change, protocol.InDoubt
	}
	if i.answer == protocol.Apply && i.call.op.generation > 0 { // the outcome is written in the next one, too
		i.answer = protocol.Next(i.successor.current, i.successorEvent(ctx, nil)).Answer
	}
	if i.ran = i.answer == protocol.Apply; i.ran {
		i.c.inflight.markRunning(i.attempt.inflight, i.batch == nil && !i.call.op.optimistic)
	}
	return i.ran
}

// functionFailed decides what follows an error of the function: a rollback, which
// is proof, and possibly a change that stores the failure or the progress.
func (i *inline) functionFailed(ctx context.Context, err error) (*store.Change, error) {
	i.fnErr = err
	var e protocol.Event
	if !i.attempt.endEvent(ctx, &e, nil, err) {
		return nil, callerr.WithoutInnerErrors(err)
	}
	d := protocol.Next(i.current, e)
	if d.Answer != protocol.Apply {
		return nil, callerr.WithoutInnerErrors(err)
	}
	i.change = d.Change
	return &i.change, callerr.WithoutInnerErrors(err)
}

// countError counts an error of the transaction as an error of the attempt, if the
// operation has Retry: the commit was refused because of the function's writes, or
// the transaction was interrupted, which the function can cause as well. It reports
// whether a change is to be stored.
func (i *inline) countError(ctx context.Context, cause error) bool {
	if i.call.op.retry == nil {
		return false
	}
	i.change = store.Change{} // the failed change must not be stored
	_, _ = i.functionFailed(ctx, callerr.InfraError(cause, true))
	return i.keepsFailure()
}

// keepsFailure reports whether a failure or progress is to be stored.
func (i *inline) keepsFailure() bool { return i.fnErr != nil && i.change.To.Token != (store.Token{}) }
