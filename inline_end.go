package semel

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/store"
)

// committed tells what the transaction wrote.
func (i *inline) committed(ctx context.Context, now store.Record) (*Outcome, error) {
	switch now.State {
	case store.Failed:
		i.see(ctx, endKind(now), now, i.fnErr)
		return nil, decodeFailure(now.Outcome)
	case store.Pending:
		i.see(ctx, EventReleased, now, i.fnErr)
		told := i.attemptError(store.NotCommitted, store.Pending, i.fnErr)
		told.After = max(now.Due, 0)
		return nil, told
	case store.Absent, store.InProgress, store.InDoubt, store.Succeeded:
	}
	i.see(ctx, EventSucceeded, now, nil)
	return &Outcome{Record: now, asReturned: i.asReturned}, nil
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
	answer, err := i.c.swap(ctx, &i.change, askTries)
	if err != nil {
		return i.stands, fmt.Errorf("%w: record the doubt: %w", ErrUnavailable, err)
	}
	if !answer.Applied(i.change) {
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
	case answer.Applied(i.change):
		now := standing(i.change, i.stands)
		out, err := i.committed(ctx, now)
		return now, out, err
	default:
		now := recordOf(answer)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
}

// committedByItself records the success of a function that ended the transaction
// on its own, which it must not: the effect is there, apart from its record, and
// is never to be made again.
func (i *inline) committedByItself(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	i.see(ctx, EventConflict, i.stands, cause)
	own := i.change // which the store may have committed after all
	if i.fnErr != nil {
		i.change = next(i.stands, i.event(store.Succeeded, encodeTombstone(endedAndFailed))).change
	}
	answer, err := i.certifyChange(ctx, i.change)
	if err == nil && answer.Applied(i.change) {
		err = i.keepTwin(ctx)
	}
	switch {
	case err != nil:
		return i.stands, nil, i.attemptError(store.Committed, i.stands.State, errors.Join(cause, err))
	case own.To.State != store.Absent && answer.Applied(own):
		now := standing(own, i.stands)
		out, err := i.committed(ctx, now)
		return now, out, err
	case !answer.Applied(i.change):
		now := recordOf(answer)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	default:
		return i.change.To, nil, i.attemptError(store.Committed, store.Succeeded, i.fnErr)
	}
}

const endedAndFailed = "the function committed its transaction by itself, and then failed"

// rolledBack tells the error of an attempt that left nothing, or what another
// has made of its key meanwhile.
func (i *inline) rolledBack(ctx context.Context, err error) (store.Record, *Outcome, error) {
	switch {
	case errors.Is(err, store.ErrNoPartition):
		return i.stands, nil, i.c.withoutPlace(i.call, err)
	case notTheAnswer(err):
		err = lostOut(err, false)
	case i.fnErr != nil:
		err = i.fnErr
	default:
		err = &txError{err: err}
	}
	if now, ok := i.overtaken(ctx); ok {
		i.see(ctx, EventFenced, now, err)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
	i.see(ctx, EventReleased, i.stands, err)
	return i.stands, nil, i.attemptError(store.NotCommitted, i.stands.State, err)
}

// overtaken returns the outcome that another has recorded while this attempt
// ran. It can have: a database ends the transaction of a leader that has been
// silent for too long, and with it the only right to the record.
func (i *inline) overtaken(ctx context.Context) (store.Record, bool) {
	if i.c.caps.Exclusive {
		return store.Record{}, false
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	now, err := i.read(ctx)
	return now, err == nil && now.State.Final() && now.Token != i.stands.Token && i.call.compare(now) == sameRequest
}

// unknownCommit finds out about a commit without an answer. The proof is a
// record of its own in the same place: once it is in force, the commit can
// never be; and if the attempt's own success stands, it was.
func (i *inline) unknownCommit(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	e := i.event(store.Pending, i.c.interruption(i.call.op, i.stands, i.stands.Attempt+1, cause))
	e.step, e.owner = stepVoid, newOwner()
	void := next(i.stands, e).change
	answer, err := i.certifyChange(ctx, void)
	switch {
	case err != nil:
		return i.stands, nil, i.attemptError(store.Unknown, i.stands.State, errors.Join(cause, err))
	case answer.Applied(void):
		i.see(ctx, EventAmbiguousNo, void.To, cause)
		return void.To, nil, i.attemptError(store.NotCommitted, store.Pending, &txError{err: cause})
	case i.change.To.State != store.Absent && answer.Token == i.change.To.Token:
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
func (i *inline) certifyChange(ctx context.Context, change store.Change) (answer store.SwapResult, err error) {
	err = untilFree(ctx, func() error {
		answer, err = i.c.swap(ctx, &change, 0)
		if err == nil && answer.Busy {
			return errBusy
		}
		return err
	})
	return answer, err
}

func (i *inline) attemptError(v store.Verdict, s store.State, err error) *AttemptError {
	if v == store.NotCommitted && i.stands.Tainted {
		v = store.Unknown // a rollback speaks for its own attempt only
	}
	return attemptError(i.call.op.name, v, s, err)
}

func (i *inline) see(ctx context.Context, kind EventKind, r store.Record, err error) {
	i.c.observe(ctx, Event{
		Kind: kind, Operation: i.call.op.name, ID: i.call.id, Attempt: i.stands.Attempt + 1, State: r.State,
		Err: err, Elapsed: since(i.begun),
	})
}
