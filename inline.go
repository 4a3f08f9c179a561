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
	begun time.Time
	owner uint64

	ran    bool         // the right was ours and fn was called
	say    say          // otherwise: why not
	busy   bool         // somebody else had the right
	stands store.Record // what stood when the right was taken
	change store.Change // the last statement
	fnErr  error
}

// runInline runs fn once as one transaction, or answers from the record.
func (c *Core) runInline(ctx context.Context, call Call, fn func(context.Context, any) (any, error)) (*Outcome, error) {
	if err := call.valid(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.leave()
	q := c.ask(call, call.op.policy.kind)
	defer q.rise()
	for {
		f, first := c.flights.join(call.id, call.fingerprint)
		if first {
			q.flight = f
			return q.inline(ctx, fn)
		}
		if out, err := q.follow(ctx, f); out != nil || err != nil {
			return out, err
		}
	}
}

// inline speaks for its key in this process until it returns.
func (q *ask) inline(ctx context.Context, fn func(context.Context, any) (any, error)) (out *Outcome, err error) {
	stands, told := store.Record{}, errAbandoned
	defer func() { // also on a panic, with the transaction rolled back
		q.c.flights.land(q.call.id, q.flight, stands, told)
	}()
	stands, err = q.first(ctx)
	for err == nil {
		if stands.State.Final() {
			told = nil
			return q.c.answer(ctx, q.call, stands)
		}
		i := &inline{ask: q, fn: fn, begun: time.Now(), owner: newOwner()}
		var again bool
		stands, out, again, err = i.run(ctx)
		if !again {
			break
		}
		stands, err = q.nextTry(ctx, i)
	}
	told = err
	return out, err
}

// nextTry waits for whoever has the right, or reads what stands in the way.
func (q *ask) nextTry(ctx context.Context, i *inline) (store.Record, error) {
	if i.busy || i.say == sayWait {
		return q.wait(ctx, i.stands)
	}
	now, err := q.c.get(ctx, q.call.id)
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
	verdict, err := i.c.atomic(ctx, i.call.id, true, i.body)
	switch {
	case err == nil || verdict == store.Committed:
		now = standing(i.change, i.stands)
		out, err = i.committed(ctx, now)
		return now, out, false, err
	case !i.ran && errors.Is(err, errNotRun):
		return i.refused(ctx)
	case !i.ran:
		return i.stands, nil, false, fmt.Errorf("%w: begin: %w", ErrUnavailable, err)
	case verdict == store.NotCommitted && errors.Is(err, store.ErrNotInForce):
		i.see(ctx, EventFenced, i.stands, nil)
		return i.stands, nil, true, nil
	case i.change.To.State == store.Failed:
		now, out, err = i.keepFailure(ctx)
		return now, out, false, err
	case verdict == store.NotCommitted:
		now, err = i.rolledBack(ctx, err)
		return now, nil, false, err
	default:
		now, out, err = i.unknownCommit(ctx, err)
		return now, out, false, err
	}
}

// limit ends the function's context when max run is over.
func (i *inline) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if i.times.maxRun == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, i.times.maxRun, fmt.Errorf("%w: max run is over", ErrLeaseLost))
}

var errNotRun = errors.New("semel: not run")

// body is what happens inside the transaction.
func (i *inline) body(ctx context.Context, tx any, stands store.Standing) (*store.Change, error) {
	i.stands = recordOf(stands)
	if stands.Busy {
		i.busy, i.say = true, sayWait
		return nil, errNotRun
	}
	d := next(i.stands, i.event(store.Succeeded, nil))
	if i.say = d.say; d.step == stepDoubt {
		i.change, i.say = d.change, sayDoubt
	}
	if i.say != sayTry {
		return nil, errNotRun
	}
	i.ran = true
	i.c.flights.lead(i.flight)
	v, err := i.fn(withTx(ctx, i.c, tx), tx)
	if err != nil {
		return i.failing(err)
	}
	outcome, why := i.c.outcome(v)
	if why != nil {
		i.see(ctx, EventTombstone, i.stands, why)
	}
	i.change = next(i.stands, i.event(store.Succeeded, outcome)).change
	return &i.change, nil
}

// failing decides what an error of the function leads to: a rollback, which is
// proof, and where it is to be kept the stored failure.
func (i *inline) failing(err error) (*store.Change, error) {
	i.fnErr = err
	mark, marked := errors.AsType[*markedError](err)
	keep := marked && mark.keep || i.call.op.onError == Keep && !circumstantial(err)
	d := next(i.stands, i.event(store.Failed, encodeFailure(err, i.c.caps.MaxOutcome)))
	if !keep || d.say != sayTry {
		return nil, err
	}
	i.change = d.change
	return &i.change, err
}

func (i *inline) event(to store.State, outcome []byte) event {
	return event{
		step: stepInline, to: to, owner: i.owner, policy: i.policy, same: i.call.is,
		identity: i.call.identity(), outcome: outcome, expire: i.times.retention,
	}
}

// committed tells what the transaction wrote.
func (i *inline) committed(ctx context.Context, now store.Record) (*Outcome, error) {
	if now.State == store.Failed {
		i.see(ctx, EventFailed, now, i.fnErr)
		return nil, decodeFailure(now.Outcome)
	}
	i.see(ctx, EventSucceeded, now, nil)
	return &Outcome{Record: now}, nil
}

// refused answers a call that could not run: from what stands, or by another try.
func (i *inline) refused(ctx context.Context) (store.Record, *Outcome, bool, error) {
	switch i.say {
	case sayReplay:
		out, err := i.c.answer(ctx, i.call, i.stands)
		return i.stands, out, false, err
	case sayWait:
		return i.stands, nil, true, nil
	case sayDoubt:
		now, err := i.doubt(ctx)
		return now, nil, false, err
	default:
		return i.stands, nil, false, i.refusal(ctx, i.say, i.stands)
	}
}

// doubt records that nobody knows what a dead leader of a leased attempt did,
// when the policy does not run again.
func (i *inline) doubt(ctx context.Context) (store.Record, error) {
	if i.change.To.State == store.Absent {
		return i.stands, ErrInDoubt
	}
	answer, err := i.c.swap(ctx, i.change, askTries)
	if err != nil {
		return i.stands, fmt.Errorf("%w: record the doubt: %w", ErrUnavailable, err)
	}
	if !answer.InForce(i.change) {
		return recordOf(answer), &waitError{after: retryAfter(i.stands)}
	}
	i.see(ctx, EventInDoubt, i.change.To, nil)
	return i.change.To, ErrInDoubt
}

// keepFailure writes the failure when the transaction that held the right could
// not: the function's writes are undone either way, and the same change asked
// for again is the same change.
func (i *inline) keepFailure(ctx context.Context) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	answer, err := i.certifyChange(ctx, i.change)
	switch {
	case err != nil:
		return i.stands, nil, i.attemptError(store.NotCommitted, i.stands.State, errors.Join(i.fnErr, err))
	case answer.InForce(i.change):
		now := standing(i.change, i.stands)
		out, err := i.committed(ctx, now)
		return now, out, err
	default:
		now := recordOf(answer)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
}

// rolledBack tells the error of an attempt that left nothing.
func (i *inline) rolledBack(ctx context.Context, err error) (store.Record, error) {
	if i.fnErr != nil {
		err = i.fnErr
	} else {
		err = &txError{err}
	}
	i.see(ctx, EventReleased, i.stands, err)
	return i.stands, i.attemptError(store.NotCommitted, i.stands.State, err)
}

// unknownCommit finds out about a commit without an answer. The proof is a
// record of its own in the same place: once it is in force, the commit can
// never be; and if the attempt's own success stands, it was.
func (i *inline) unknownCommit(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	e := i.event(store.Pending, nil)
	e.step, e.owner = stepVoid, newOwner()
	void := next(i.stands, e).change
	answer, err := i.certifyChange(ctx, void)
	switch {
	case err != nil:
		return i.stands, nil, i.attemptError(store.Unknown, i.stands.State, errors.Join(cause, err))
	case answer.InForce(void):
		i.see(ctx, EventAmbiguousNo, void.To, cause)
		return void.To, nil, i.attemptError(store.NotCommitted, store.Pending, &txError{cause})
	case answer.Token == i.change.To.Token:
		now := standing(i.change, i.stands)
		i.see(ctx, EventAmbiguousYes, now, cause)
		out, err := i.committed(ctx, now)
		return now, out, err
	default:
		now := recordOf(answer)
		i.see(ctx, EventFenced, now, cause)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
}

// certifyChange asks for one change, alone, until the store says whether it is
// in force, as long as ctx lasts.
func (i *inline) certifyChange(ctx context.Context, change store.Change) (store.Standing, error) {
	wait := 5 * time.Millisecond
	for {
		answer, err := i.c.swap(ctx, change, 0)
		if err != nil || !answer.Busy {
			return answer, err
		}
		if err := pause(ctx, jitter(wait)); err != nil {
			return answer, errors.Join(errBusy, err)
		}
		wait = min(2*wait, 100*time.Millisecond)
	}
}

func (i *inline) attemptError(v store.Verdict, s store.State, err error) error {
	return &AttemptError{Operation: i.call.op.name, Verdict: v, State: s, Err: err}
}

func (i *inline) see(ctx context.Context, kind EventKind, r store.Record, err error) {
	i.c.observe(ctx, Event{
		Kind: kind, Operation: i.call.op.name, ID: i.call.id, Attempt: i.stands.Attempt + 1, State: r.State,
		Err: err, Elapsed: time.Since(i.begun),
	})
}
