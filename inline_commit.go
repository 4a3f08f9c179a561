package semel

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// committed returns the answer for the record that the transaction wrote.
func (i *inline) committed(ctx context.Context, now store.Record) (*Outcome, error) {
	i.emit(ctx, endKind(protocol.StepInline, &now), now, i.fnErr)
	if err := endError(i.call.op, &now, i.rollbackVerdict(), i.fnErr); err != nil {
		return nil, err
	}
	return &Outcome{Record: now, lossless: i.lossless}, nil
}

// refused answers a call whose function did not run: from the record, or by another
// try.
func (i *inline) refused(ctx context.Context) (store.Record, *Outcome, bool, error) {
	switch i.answer {
	case protocol.Replay:
		out, err := i.c.answer(ctx, i.call, i.current)
		return i.current, out, false, err
	case protocol.Wait:
		return i.current, nil, true, nil
	case protocol.InDoubt:
		now, err := i.doubt(ctx)
		return now, nil, false, err
	default:
		return i.current, nil, false, i.c.refusal(ctx, i.answer, i.current)
	}
}

// doubt records that the effect of a crashed leased attempt is unknown, if the
// policy allows no other attempt.
func (i *inline) doubt(ctx context.Context) (store.Record, error) {
	if i.change.To.Token == (store.Token{}) {
		return i.current, ErrInDoubt
	}
	answer, err := i.c.swap(ctx, &i.change, askTries)
	if err != nil {
		return i.current, fmt.Errorf("%w: record the doubt: %w", ErrUnavailable, err)
	}
	if !answer.Applied(i.change) {
		return recordOf(answer), &waitError{after: protocol.RetryAfter(i.current)}
	}
	i.emit(ctx, EventInDoubt, i.change.To, nil)
	return i.change.To, ErrInDoubt
}

// keepFailure writes the failure in a second transaction, if the first one could
// not. The function's writes are rolled back either way, and repeating the change
// is safe.
func (i *inline) keepFailure(ctx context.Context) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	answer, err := i.prove(ctx, i.change)
	switch {
	case err != nil:
		return i.current, nil, i.attemptError(i.rollbackVerdict(), i.current.State, errors.Join(i.fnErr, err))
	case answer.Applied(i.change):
		now := recordAfter(i.change, i.current)
		out, err := i.committed(ctx, now)
		return now, out, err
	default:
		now := recordOf(answer)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
}

// committedByItself records the success of a function that committed the
// transaction itself, which is not allowed. The effect exists without its record,
// and must not happen again.
func (i *inline) committedByItself(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	i.emit(ctx, EventConflict, i.current, cause)
	own := i.change // the store may have committed it after all
	if i.fnErr != nil {
		i.change = protocol.Next(i.current, i.event(store.Succeeded, encodeTombstone(endedAndFailed))).Change
	}
	answer, err := i.prove(ctx, i.change)
	if err == nil && answer.Applied(i.change) {
		err = i.keepSuccessor(ctx)
	}
	switch {
	case err != nil:
		return i.current, nil, i.attemptError(store.Committed, i.current.State, errors.Join(cause, err))
	case own.To.Token != (store.Token{}) && answer.Applied(own):
		now := recordAfter(own, i.current)
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

// rolledBack returns the error of an attempt without effect, or the answer of the
// record that another attempt has written meanwhile.
func (i *inline) rolledBack(ctx context.Context, result protocol.TxResult, err error) (store.Record, *Outcome, error) {
	switch {
	case result == protocol.TxNoPartition:
		return i.current, nil, i.c.noPartitionError(i.call, err)
	case result.Circumstantial():
		err = infraError(err, false)
	case i.fnErr != nil:
		err = i.fnErr
	default:
		err = &txError{err: err}
	}
	if now, ok := i.overtaken(ctx); ok {
		i.emit(ctx, EventFenced, now, err)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
	i.emit(ctx, EventReleased, i.current, err)
	return i.current, nil, i.attemptError(i.rollbackVerdict(), i.current.State, err)
}

// overtaken returns the final record that another attempt has written during this
// one. That is possible because a database ends a transaction that is idle for too
// long, and with it the exclusive right to the record.
func (i *inline) overtaken(ctx context.Context) (store.Record, bool) {
	if i.c.caps.SingleWriter {
		return store.Record{}, false
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	now, err := i.read(ctx)
	return now, err == nil && now.Token != i.current.Token && protocol.AnswerTo(&now, i.call.Compare(now)) == protocol.Replay
}

// unknownCommit settles a commit whose reply was lost. The proof is a write to the
// same record: if it is applied, the commit can never be applied; if the record has
// this attempt's token, it was.
func (i *inline) unknownCommit(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	e := i.event(store.Pending, i.c.interruption(i.call.op, i.current, i.current.Attempt+1, cause))
	e.Step, e.Owner = protocol.StepVoid, newOwner()
	void := protocol.Next(i.current, e).Change
	answer, err := i.prove(ctx, void)
	switch {
	case err != nil:
		return i.current, nil, i.attemptError(store.Unknown, i.current.State, errors.Join(cause, err))
	case answer.Applied(void):
		i.emit(ctx, EventAmbiguousNo, void.To, cause)
		return void.To, nil, i.attemptError(i.rollbackVerdict(), store.Pending, &txError{err: cause})
	case answer.HasToken(i.change.To.Token) && i.change.To.Token != (store.Token{}):
		now := recordAfter(i.change, i.current)
		i.emit(ctx, EventAmbiguousYes, now, cause)
		out, err := i.committed(ctx, now)
		return now, out, err
	default:
		now := recordOf(answer)
		i.emit(ctx, EventFenced, now, cause)
		out, err := i.c.answer(ctx, i.call, now)
		return now, out, err
	}
}

// prove repeats one change, outside of a batch, until the store says whether it is
// applied, or ctx ends.
func (i *inline) prove(ctx context.Context, change store.Change) (answer store.SwapResult, err error) {
	err = retryBusy(ctx, func() error {
		answer, err = i.c.swap(ctx, &change, 0)
		if err == nil && answer.Busy {
			return errBusy
		}
		return err
	})
	return answer, err
}

// rollbackVerdict is what a rollback says about the effect. It proves nothing about
// an earlier attempt.
func (i *inline) rollbackVerdict() store.Verdict {
	policy := i.attempt.policy
	return protocol.Verdict(true, protocol.Taint(&i.current, policy), policy, false)
}

func (i *inline) attemptError(v store.Verdict, s store.State, err error) *AttemptError {
	return attemptError(i.call.op.name, v, s, err)
}

func (i *inline) emit(ctx context.Context, kind EventKind, r store.Record, err error) {
	i.c.observe(ctx, Event{
		Kind: kind, Operation: i.call.op.name, ID: i.call.id, Attempt: i.current.Attempt + 1, State: r.State,
		Err: err, Elapsed: since(i.begun),
	})
}
