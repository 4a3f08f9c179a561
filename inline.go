package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// inline is an attempt that is a single transaction: it takes the exclusive right
// to the record, runs the function, writes the final record once, and commits.
type inline struct {
	*claimer
	fn    func(ctx context.Context, tx any) (any, error)
	batch batchFunc // instead of fn
	begun time.Time
	owner uint64
	lost  *conflictCounter

	ran     bool            // the attempt had the right and fn was called
	answer  protocol.Answer // otherwise: why it did not run
	busy    bool            // another transaction has the right
	current store.Record    // the record at the begin of the transaction
	change  store.Change    // the last statement
	fnErr   error

	lossless bool // decoding the outcome gives the function's value
}

// runInline runs fn once as one transaction, or answers from the record.
func (c *Core) runInline(ctx context.Context, call Call, fn func(context.Context, any) (any, error)) (*Outcome, error) {
	return c.runOnce(ctx, call, inline{fn: fn})
}

// runOnce runs the function of like, or answers from the record.
func (c *Core) runOnce(ctx context.Context, call Call, like inline) (*Outcome, error) {
	if err := c.admit(ctx, &call, protocol.Atomic); err != nil {
		return nil, err
	}
	defer c.leave()
	if out, known, err := c.fromCache(ctx, &call); known {
		return out, err
	}
	q := c.newClaimer(&call, call.op.policy.kind)
	defer q.releaseWaiter()
	for {
		f, first := c.inflight.acquire(q.call, &q.own, q.attempt.begun)
		if first {
			q.attempt.inflight = f
			return q.inline(ctx, like)
		}
		if out, err := q.follow(ctx, f); out != nil || err != nil {
			return out, err
		}
		q.restartClock()
	}
}

// inline runs as the first caller of its key in this process.
func (q *claimer) inline(ctx context.Context, like inline) (out *Outcome, err error) {
	current, told := store.Record{}, errAbandoned
	id := q.call.id // the ID changes with the generation
	defer func() {  // also on a panic, with the transaction rolled back
		q.c.inflight.finish(id, q.attempt.inflight, &current, told)
	}()
	asked := q.c.cache.clock()
	err = q.readFirst(ctx, &current)
	var lost conflictCounter
	for err == nil {
		if protocol.AnswerTo(&current, protocol.SameRequest) == protocol.Replay {
			q.c.readHint.observe(true)
			q.cacheFinal(&current, asked)
			told = nil
			return q.c.answer(ctx, q.call, current)
		}
		i := &inline{claimer: q, fn: like.fn, batch: like.batch, begun: now(), owner: newOwner(), lost: &lost}
		i.current = current
		var again bool
		current, out, again, err = i.run(ctx)
		if !again {
			q.c.readHint.observe(!i.ran)
			q.cacheFinal(&current, asked)
			break
		}
		current, err = q.nextTry(ctx, i)
	}
	told = errForFollowers(ctx, err)
	return out, err
}

// nextTry waits for the transaction or attempt that has the record, or reads the
// record that superseded this attempt.
func (q *claimer) nextTry(ctx context.Context, i *inline) (store.Record, error) {
	if i.busy || i.answer == protocol.Wait {
		return q.wait(ctx, i.current)
	}
	now, err := q.read(ctx)
	if err != nil {
		return now, fmt.Errorf("%w: read the record: %w", ErrUnavailable, err)
	}
	return now, nil
}

// run runs one transaction. again means that nothing was run, or that it was rolled
// back because of another write.
func (i *inline) run(ctx context.Context) (now store.Record, out *Outcome, again bool, err error) {
	ctx, cancel := i.limit(ctx)
	defer cancel()
	verdict, err := i.transact(ctx)
	result := protocol.Classify(protocol.TxEnd{
		Verdict: verdict, Err: err, Called: i.ran, Failed: i.fnErr != nil, Stores: i.keepsFailure(),
	})
	if result == protocol.TxNotCalled && errors.Is(err, errNotRun) {
		return i.refused(ctx)
	}
	if (result == protocol.TxConflict || result == protocol.TxSuperseded) && i.lost.retry(ctx, result) {
		i.emit(ctx, conflictEvent(result), i.current, err)
		return i.current, nil, true, nil
	}
	now, out, err = i.concluded(ctx, result, err)
	return now, out, false, err
}

// concluded returns the answer of the transaction's end. The transaction does not
// run again.
func (i *inline) concluded(ctx context.Context, result protocol.TxResult, err error) (store.Record, *Outcome, error) {
	switch result {
	case protocol.TxCommitted:
		now := recordAfter(i.change, i.current)
		out, err := i.committed(ctx, now)
		return now, out, err
	case protocol.TxCommittedByHandler:
		return i.committedByItself(ctx, err)
	case protocol.TxEndedByHandler:
		i.emit(ctx, EventConflict, i.current, err)
		return i.current, nil, i.attemptError(store.Unknown, i.current.State, err)
	case protocol.TxHandlerFailed:
		if i.keepsFailure() {
			return i.keepFailure(ctx)
		}
	case protocol.TxInterrupted, protocol.TxRolledBack:
		if i.countError(ctx, err) {
			return i.keepFailure(ctx)
		}
	case protocol.TxUnknown:
		return i.unknownCommit(ctx, err)
	case protocol.TxNotCalled:
		return i.current, nil, fmt.Errorf("%w: begin: %w", ErrUnavailable, err)
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

// limit ends the function's context at max run.
func (i *inline) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if i.attempt.times.maxRun == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, i.attempt.times.maxRun, fmt.Errorf("%w: max run is over", ErrLeaseLost))
}

var errNotRun = errors.New("semel: not run")

// body runs inside the transaction.
func (i *inline) body(ctx context.Context, tx any, current store.SwapResult) (*store.Change, error) {
	i.current = recordOf(current)
	if current.Busy {
		i.busy, i.answer = true, protocol.Wait
		return nil, errNotRun
	}
	if !i.mayRun() {
		return nil, errNotRun
	}
	if err := i.call.op.exhausted(i.current, i.current.Attempt+1); err != nil {
		return i.functionFailed(ctx, err)
	}
	v, err := i.fn(withOperation(ctx, *i.call, i.c, tx), tx)
	if err != nil {
		return i.functionFailed(ctx, err)
	}
	i.change = protocol.Next(i.current, i.event(store.Succeeded, i.outcome(ctx, v))).Change
	if err := i.writeSuccessor(ctx, tx); err != nil {
		return nil, err
	}
	return &i.change, nil
}

// outcome encodes the function's result, or a tombstone if it cannot be stored.
func (i *inline) outcome(ctx context.Context, v any) []byte {
	e, why := i.c.outcome(v)
	i.lossless = e.lossless
	switch {
	case why != nil:
		i.emit(ctx, EventTombstone, i.current, why)
	case e.altered != nil:
		i.emit(ctx, EventAltered, i.current, e.altered)
	}
	return e.outcome
}

// mayRun reports whether the function may run on the current record. If not, it
// sets the answer.
func (i *inline) mayRun() bool {
	d := protocol.Next(i.current, i.event(store.Succeeded, nil))
	if i.answer = d.Answer; d.Step == protocol.StepDoubt {
		i.change, i.answer = d.Change, protocol.InDoubt
	}
	if i.answer == protocol.Apply {
		i.answer = i.mayWriteSuccessor()
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
	end := i.c.endingOf(ctx, i.call, &i.current, i.current.Attempt+1, err, true)
	end.Policy, end.Inline, end.Tainted = i.attempt.policy, true, protocol.Taint(&i.current, i.attempt.policy)
	e := i.event(store.Absent, nil)
	if !i.c.conclude(&end, &e) {
		return nil, withoutInnerErrors(err)
	}
	d := protocol.Next(i.current, e)
	if d.Answer != protocol.Apply {
		return nil, withoutInnerErrors(err)
	}
	i.change = d.Change
	return &i.change, withoutInnerErrors(err)
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
	_, _ = i.functionFailed(ctx, infraError(cause, true))
	return i.keepsFailure()
}

// keepsFailure reports whether a failure or progress is to be stored.
func (i *inline) keepsFailure() bool { return i.fnErr != nil && i.change.To.Token != (store.Token{}) }

func (i *inline) event(to store.State, outcome []byte) protocol.Event {
	return protocol.Event{
		Step: protocol.StepInline, To: to, Owner: i.owner, Policy: i.attempt.policy, Request: i.call,
		Identity: i.call.identity(), Outcome: outcome, Expire: i.attempt.times.retention,
	}
}
