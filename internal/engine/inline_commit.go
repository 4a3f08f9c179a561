package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// committed returns the answer for the record that the transaction wrote.
func (i *inline) committed(ctx context.Context, now store.Record) (store.Record, *Outcome, error) {
	a := &i.attempt
	a.emitEnd(ctx, protocol.StepInline, &now, i.fnErr)
	if err := a.endError(true, &now, i.fnErr); err != nil {
		return now, nil, err
	}
	return now, &Outcome{Record: now, lossless: a.lossless}, nil
}

// settled returns the answer after an end that had to be settled.
func (i *inline) settled(ctx context.Context, end txEnd) (store.Record, *Outcome, error) {
	switch {
	case end.superseded:
		out, err := i.c.answer(ctx, i.call, end.current)
		return end.current, out, err
	case end.err != nil:
		return end.current, nil, end.err
	default:
		return i.committed(ctx, end.current)
	}
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
		return i.current, nil, false, i.c.refusal(ctx, i.call, i.answer, i.current)
	}
}

// doubt records that the effect of a crashed leased attempt is unknown, if the
// policy allows no other attempt.
func (i *inline) doubt(ctx context.Context) (store.Record, error) {
	if i.change.To.Token == (store.Token{}) {
		return i.current, callerr.ErrInDoubt
	}
	answer, err := i.c.writer.swap(ctx, &i.change, swapTries)
	if err != nil {
		return i.current, fmt.Errorf("%w: record the doubt: %w", callerr.ErrUnavailable, err)
	}
	if !answer.Applied(i.change) {
		return recordOf(answer), &callerr.WaitError{After: protocol.RetryAfter(i.current)}
	}
	i.attempt.emit(ctx, event.InDoubt, i.change.To, nil)
	return i.change.To, callerr.ErrInDoubt
}

// keepFailure writes the failure in a second transaction, if the first one could
// not. The function's writes are rolled back either way, and repeating the change
// is safe.
func (i *inline) keepFailure(ctx context.Context) (store.Record, *Outcome, error) {
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	answer, err := i.c.writer.proveChange(ctx, &i.change)
	switch {
	case err != nil:
		a := &i.attempt
		return i.current, nil, a.attemptError(a.rollbackVerdict(), i.current.State, errors.Join(i.fnErr, err))
	case answer.Applied(i.change):
		return i.committed(ctx, recordAfter(i.change, i.current))
	default:
		return i.superseded(ctx, recordOf(answer))
	}
}

// superseded returns the answer of the record that has superseded a transaction of
// which nothing was committed. A record without an answer that no other call runs can run.
func (i *inline) superseded(ctx context.Context, now store.Record) (store.Record, *Outcome, error) {
	var e protocol.Event
	i.attempt.endEvent(ctx, &e, nil, nil)
	if protocol.AnswerTo(&now, i.call.Compare(now)) == protocol.Wait && protocol.Next(now, e).Answer == protocol.Apply {
		return now, nil, errPending
	}
	return i.settled(ctx, txEnd{current: now, superseded: true})
}

// committedByHandler records the success of a function that committed the
// transaction itself, in both generations if the operation has them.
func (i *inline) committedByHandler(ctx context.Context, cause error) (store.Record, *Outcome, error) {
	end := i.attempt.committedByHandler(ctx, &i.change, i.fnErr, cause)
	if !end.superseded && protocol.AnswerTo(&end.current, protocol.SameRequest) == protocol.Replay {
		if err := i.keepSuccessor(ctx, end.current.Outcome); err != nil {
			return i.current, nil, i.attempt.attemptError(store.Committed, i.current.State, errors.Join(cause, err))
		}
	}
	return i.settled(ctx, end)
}

// rolledBack returns the error of an attempt without effect, or the answer of the
// record that another attempt has written meanwhile.
func (i *inline) rolledBack(ctx context.Context, result protocol.TxResult, err error) (store.Record, *Outcome, error) {
	switch {
	case result == protocol.TxNoPartition:
		return i.current, nil, i.c.noPartitionError(i.call, err)
	case result.Circumstantial():
		err = callerr.InfraError(err, false)
	case i.fnErr != nil:
		err = i.fnErr
	default:
		err = &callerr.TxError{Err: err}
	}
	if now, ok := i.overtaken(ctx); ok {
		i.attempt.emit(ctx, event.Fenced, now, err)
		return i.settled(ctx, txEnd{current: now, superseded: true})
	}
	a := &i.attempt
	a.emit(ctx, event.Released, i.current, err)
	return i.current, nil, a.attemptError(a.rollbackVerdict(), i.current.State, err)
}

// overtaken returns the final record that another attempt has written during this
// one. That is possible because a database ends a transaction that is idle for too
// long, and with it the exclusive right to the record.
func (i *inline) overtaken(ctx context.Context) (store.Record, bool) {
	if i.c.caps.Exclusion == store.ExcludesAll {
		return store.Record{}, false
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	now, err := i.read(ctx)
	return now, err == nil && now.Token != i.current.Token && protocol.AnswerTo(&now, i.call.Compare(now)) == protocol.Replay
}

// successorEvent returns the event that writes the outcome in the next generation.
func (i *inline) successorEvent(ctx context.Context, outcome []byte) (e protocol.Event) {
	i.attempt.endEvent(ctx, &e, outcome, nil)
	e.Identity.ID = i.successor.id
	return e
}

// writeSuccessor writes the outcome in the next generation, before the last statement of
// the transaction writes it in this one. If the write is not applied, another
// caller was first in one of the two generations, and the transaction is rolled
// back.
func (i *inline) writeSuccessor(ctx context.Context, tx any) error {
	if n, _ := i.call.op.generationAt(i.c.options.Clock(), i.call.scope.text, i.call.key); n != i.successor.generation {
		return fmt.Errorf("the generation is over: %w", store.ErrConflict)
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	change := protocol.Next(i.successor.current, i.successorEvent(ctx, i.change.To.Outcome)).Change
	answers, err := i.c.swapTx(ctx, tx, []store.Change{change})
	switch {
	case err != nil:
		return fmt.Errorf("write the record of the next generation: %w", err)
	case answers[0].Err != nil:
		return fmt.Errorf("write the record of the next generation: %w", answers[0].Err)
	case answers[0].Busy:
		i.ran, i.answer = false, protocol.Wait
		return callerr.ErrNotRun
	case !answers[0].Applied(change):
		return fmt.Errorf("write the record of the next generation: %w", store.ErrSuperseded)
	}
	return nil
}

// keepSuccessor writes the successor of an outcome that was committed without it.
func (i *inline) keepSuccessor(ctx context.Context, outcome []byte) error {
	if i.call.op.generation == 0 {
		return nil
	}
	ctx, cancel := i.c.bounded(ctx)
	defer cancel()
	change := protocol.Next(i.successor.current, i.successorEvent(ctx, outcome)).Change
	_, err := i.c.writer.proveChange(ctx, &change)
	return err
}

// conflictTries is how often a transaction runs that is aborted because of
// conflicts.
const conflictTries = 8

// conflictCounter counts the conflicts of one attempt's transactions. After a
// conflict the whole transaction must run again, because what it has read is no
// longer true.
type conflictCounter int

// retry reports whether a transaction that was rolled back because of a conflict is
// to run again. Before it returns true it waits, with jittered exponential backoff.
// After the first superseded write it does not wait, because nothing is to be waited
// for.
func (c *conflictCounter) retry(ctx context.Context, result protocol.TxResult) bool {
	if *c++; *c >= conflictTries {
		return false
	}
	return result == protocol.TxSuperseded && *c == 1 || clock.Sleep(ctx, jitter(time.Millisecond<<*c)) == nil
}
