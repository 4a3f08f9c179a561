package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// inline is one attempt that is a single transaction: take the only right to
// the record, run, write the final record once, commit.
type inline struct {
	*ask
	fn    func(ctx context.Context, tx any) (any, error)
	batch batchFunc // instead of fn
	begun time.Time
	owner uint64
	lost  *conflicts

	ran    bool         // the right was ours and fn was called
	say    say          // otherwise: why not
	busy   bool         // somebody else had the right
	stands store.Record // what stood when the right was taken
	change store.Change // the last statement
	fnErr  error

	asReturned bool // decoding the outcome gives the value that the function returned
}

// runInline runs fn once as one transaction, or answers from the record.
func (c *Core) runInline(ctx context.Context, call Call, fn func(context.Context, any) (any, error)) (*Outcome, error) {
	return c.runOnce(ctx, call, inline{fn: fn})
}

// runOnce runs the function of like.
func (c *Core) runOnce(ctx context.Context, call Call, like inline) (*Outcome, error) {
	if err := c.admit(ctx, &call, policyAtomic); err != nil {
		return nil, err
	}
	defer c.leave()
	if out, known, err := c.remembered(ctx, &call); known {
		return out, err
	}
	q := c.ask(&call, call.op.policy.kind)
	defer q.rise()
	for {
		f, first := c.flights.join(q.call, &q.own, q.attempt.begun)
		if first {
			q.attempt.flight = f
			return q.inline(ctx, like)
		}
		if out, err := q.follow(ctx, f); out != nil || err != nil {
			return out, err
		}
		q.asksAnew()
	}
}

// inline speaks for its key in this process until it returns.
func (q *ask) inline(ctx context.Context, like inline) (out *Outcome, err error) {
	stands, told := store.Record{}, errAbandoned
	id := q.call.id // the call's own goes with the generations
	defer func() {  // also on a panic, with the transaction rolled back
		q.c.flights.land(id, q.attempt.flight, &stands, told)
	}()
	asked := q.c.replays.clock()
	err = q.first(ctx, &stands)
	var lost conflicts
	for err == nil {
		if stands.State.Final() {
			q.c.lately.met(true)
			q.remember(&stands, asked)
			told = nil
			return q.c.answer(ctx, q.call, stands)
		}
		i := &inline{ask: q, fn: like.fn, batch: like.batch, begun: now(), owner: newOwner(), lost: &lost}
		i.stands = stands
		var again bool
		stands, out, again, err = i.run(ctx)
		if !again {
			q.c.lately.met(!i.ran)
			q.remember(&stands, asked)
			break
		}
		stands, err = q.nextTry(ctx, i)
	}
	told = forOthers(ctx, err)
	return out, err
}

// nextTry waits for whoever has the right, or reads what stands in the way.
func (q *ask) nextTry(ctx context.Context, i *inline) (store.Record, error) {
	if i.busy || i.say == sayWait {
		return q.wait(ctx, i.stands)
	}
	now, err := q.read(ctx)
	if err != nil {
		return now, fmt.Errorf("%w: read the record: %w", ErrUnavailable, err)
	}
	return now, nil
}

// run makes one transaction. Again means that nothing was run, or that what was
// run is rolled back because somebody else's write stands.
func (i *inline) run(ctx context.Context) (now store.Record, out *Outcome, again bool, err error) {
	ctx, cancel := i.limit(ctx)
	defer cancel()
	verdict, err := i.transact(ctx)
	switch {
	case err == nil:
		now = standing(i.change, i.stands)
		out, err = i.committed(ctx, now)
		return now, out, false, err
	case verdict == store.Committed:
		now, out, err = i.committedByItself(ctx, err)
		return now, out, false, err
	case !i.ran && errors.Is(err, errNotRun):
		return i.refused(ctx)
	case !i.ran:
		return i.stands, nil, false, fmt.Errorf("%w: begin: %w", ErrUnavailable, err)
	case verdict == store.Unknown && errors.Is(err, store.ErrTxEndedByHandler):
		i.see(ctx, EventConflict, i.stands, err)
		return i.stands, nil, false, i.attemptError(store.Unknown, i.stands.State, err)
	case verdict == store.NotCommitted && i.lost.again(ctx, err):
		i.see(ctx, eventOfLoss(err), i.stands, err)
		return i.stands, nil, true, nil
	case verdict == store.NotCommitted && errors.Is(err, store.ErrInterrupted) && i.counted(ctx, err):
		now, out, err = i.keepFailure(ctx)
		return now, out, false, err
	case verdict == store.NotCommitted && notTheAnswer(err):
		now, out, err = i.rolledBack(ctx, err)
		return now, out, false, err
	case i.keeps():
		now, out, err = i.keepFailure(ctx)
		return now, out, false, err
	case verdict == store.NotCommitted && i.counted(ctx, err):
		now, out, err = i.keepFailure(ctx)
		return now, out, false, err
	case verdict == store.NotCommitted:
		now, out, err = i.rolledBack(ctx, err)
		return now, out, false, err
	default:
		now, out, err = i.unknownCommit(ctx, err)
		return now, out, false, err
	}
}

// transact waits for its transaction no longer than who asked for it. Once it
// runs, only the function's own context counts.
func (i *inline) transact(ctx context.Context) (store.Verdict, error) {
	waiting, done := patient(ctx)
	defer done()
	if i.batch != nil {
		return i.send(ctx, waiting)
	}
	return i.c.atomic(waiting, i.call.id, !i.call.op.optimistic, func(_ context.Context, tx any, stands store.SwapResult) (*store.Change, error) {
		return i.body(ctx, tx, stands)
	})
}

// limit ends the function's context when max run is over.
func (i *inline) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if i.attempt.times.maxRun == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, i.attempt.times.maxRun, fmt.Errorf("%w: max run is over", ErrLeaseLost))
}

var errNotRun = errors.New("semel: not run")

// body is what happens inside the transaction.
func (i *inline) body(ctx context.Context, tx any, stands store.SwapResult) (*store.Change, error) {
	i.stands = recordOf(stands)
	if stands.Busy {
		i.busy, i.say = true, sayWait
		return nil, errNotRun
	}
	if !i.mayRun() {
		return nil, errNotRun
	}
	if err := i.call.op.spent(i.stands, i.stands.Attempt+1); err != nil {
		return i.failing(ctx, err)
	}
	v, err := i.fn(withOperation(ctx, *i.call, i.c, tx), tx)
	if err != nil {
		return i.failing(ctx, err)
	}
	i.change = next(i.stands, i.event(store.Succeeded, i.outcome(ctx, v))).change
	if err := i.writeTwin(ctx, tx); err != nil {
		return nil, err
	}
	return &i.change, nil
}

// outcome encodes the function's result, or the tombstone of one that cannot be stored.
func (i *inline) outcome(ctx context.Context, v any) []byte {
	e, why := i.c.outcome(v)
	i.asReturned = e.asReturned
	switch {
	case why != nil:
		i.see(ctx, EventTombstone, i.stands, why)
	case e.altered != nil:
		i.see(ctx, EventAltered, i.stands, e.altered)
	}
	return e.outcome
}

// mayRun reports whether the function may run on what stands, and says why not.
func (i *inline) mayRun() bool {
	d := next(i.stands, i.event(store.Succeeded, nil))
	if i.say = d.say; d.step == stepDoubt {
		i.change, i.say = d.change, sayDoubt
	}
	if i.say == sayTry {
		i.say = i.mayStartTwin()
	}
	if i.ran = i.say == sayTry; i.ran {
		i.c.flights.lead(i.attempt.flight, i.batch == nil && !i.call.op.optimistic)
	}
	return i.ran
}

// failing decides what an error of the function leads to: a rollback, which is
// proof, and where something of it is to be kept, what that is.
func (i *inline) failing(ctx context.Context, err error) (*store.Change, error) {
	i.fnErr = err
	mark, marked := errors.AsType[*markedError](err)
	keep := marked && mark.keep || i.call.op.onError == Keep && !circumstantial(err)
	e := i.event(store.Failed, encodeFailure(err, i.c.caps.MaxOutcome))
	switch {
	case i.call.op.generation > 0:
		return nil, partOf(err)
	case keep && !i.stands.Tainted && i.call.op.rejects():
		i.call.op.retry.deadLetter(&e, err, i.c.caps.MaxOutcome)
	case keep && (!i.stands.Tainted || i.call.op.retry == nil):
	case i.call.op.retry != nil:
		i.tried(ctx, &e, err)
	default:
		return nil, partOf(err)
	}
	d := next(i.stands, e)
	if d.say != sayTry {
		return nil, partOf(err)
	}
	i.change = d.change
	return &i.change, partOf(err)
}

// counted makes an error of the attempt, where attempts are counted, of a
// transaction that its function did not end so: its commit was refused for what the
// function wrote, or it was broken off, which a function can bring about as well. It
// reports whether there is something to keep.
func (i *inline) counted(ctx context.Context, cause error) bool {
	if !i.ran || i.call.op.retry == nil {
		return false
	}
	i.change = store.Change{} // what was to be committed is not to be kept
	_, _ = i.failing(ctx, lostOut(cause, true))
	return i.keeps()
}

// tried makes of e what the operation's Retry says: another attempt, later, or
// the end of all. Where an earlier attempt may have had an effect, it never ends.
func (i *inline) tried(ctx context.Context, e *event, err error) {
	before, _ := ProgressOf(i.stands)
	p, f, delay := i.call.op.retry.after(ctx, before, i.stands.Attempt+1, err)
	if f != nil && !i.stands.Tainted {
		i.call.op.retry.deadLetter(e, f, i.c.caps.MaxOutcome)
		return
	}
	e.to, e.outcome, e.delay = store.Pending, p.encode(i.c.caps.MaxOutcome), delay
}

// keeps tells whether something is to be kept of what the function failed with.
func (i *inline) keeps() bool { return i.fnErr != nil && i.change.To.State != store.Absent }

func (i *inline) event(to store.State, outcome []byte) event {
	return event{
		step: stepInline, to: to, owner: i.owner, policy: i.attempt.policy, of: i.call,
		identity: i.call.identity(), outcome: outcome, expire: i.attempt.times.retention,
	}
}
