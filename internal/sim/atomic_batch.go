package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// Batch holds the effects that the statements of a DoBatch write.
type Batch struct{ effects []effect }

var _ store.Batcher[*Batch] = (*Store)(nil)

// batchFunction is the function of a DoBatch: it returns its statements.
func (a *actor) batchFunction(ctx context.Context) (string, *Batch, error) {
	value, g := a.stamp(), a.grantOf(ctx)
	a.w.noteBegun(g)
	if err := a.mayRefuse(g, value); err != nil {
		return "", nil, err
	}
	return value, &Batch{effects: []effect{{grant: g, value: value}}}, nil
}

// mayRefuse returns an error of the operation if the scheduler chooses one.
func (a *actor) mayRefuse(g grant, value string) error {
	h := a.refusal()
	if h == resultRefused {
		a.w.noteError(g)
		return errors.New(value + " is refused")
	}
	if h == resultForbidden {
		return semel.Final(&semel.Failure{Message: value + " is forbidden"})
	}
	return nil
}

// AtomicBatch implements [store.Batcher]. All of it is one step: what is lost with it
// is lost as the last statement of a transaction is.
func (s *Store) AtomicBatch(_ context.Context, change store.Change, hold bool, b *Batch) (store.SwapResult, store.Verdict, error) {
	a, err := s.actor()
	if err == nil && a.status == statusDead {
		err = errRunOver
	}
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	tx := a.w.open(a, a.w.indexOf(change.To.ID), false)
	tx.whole, tx.wants, tx.commits, tx.change, tx.effects = true, hold, true, &change, b.effects
	h := a.call(op{kind: opBatch, row: tx.row, hold: hold, change: change, session: tx})
	switch {
	case h == resultDead:
		a.w.orphan(tx)
		return store.SwapResult{}, store.Unknown, errLost
	case h == resultLost:
		a.w.close(tx)
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, errLost)
	case h == resultUnknown, h == resultUnknownLocked && a.w.canRun(tx):
		a.note(1)
		tx.orphan, tx.locked, a.unknownCommit = true, h == resultUnknownLocked, true
		return store.SwapResult{}, store.Unknown, errLost
	default:
		return a.batchResult(tx, h)
	}
}

// canRun reports whether the change of a batch can be applied now, so that its
// statements run.
func (w *world) canRun(s *session) bool { return !w.isBlocked(s) && w.rows[s.row].mayChange(s.change) }

// isBlocked reports whether other transactions block a batch.
func (w *world) isBlocked(s *session) bool {
	return w.writer(s.row, s) != nil || s.wants && w.holder(s.row, s) != nil
}

// batchResult returns the server's answer to a batch.
func (a *actor) batchResult(tx *session, h callResult) (answer store.SwapResult, verdict store.Verdict, err error) {
	w := a.w
	runs, busy := w.canRun(tx), w.isBlocked(tx)
	switch {
	case runs && h == resultOK:
		w.commit(tx)
		a.note(1)
		w.logf("committed")
		return store.SwapResult{Token: tx.change.To.Token}, store.Committed, nil
	case runs && h == resultAborted:
		w.mark(MarkAborted)
		err = errors.New(tx.effects[0].value + " is refused by the database")
	case h == resultConflict:
		w.mark(MarkConflict)
		err = store.ErrConflict
	case busy:
		w.mark(MarkBusy)
		answer = store.SwapResult{Busy: true}
	case w.rows[tx.row].rec.Token == tx.change.To.Token:
		answer = store.SwapResult{Token: tx.change.To.Token}
	default:
		w.mark(MarkRolledBack)
		answer = w.rows[tx.row].current()
	}
	w.close(tx)
	a.noteResult(answer)
	w.logResult(answer, false)
	return answer, store.NotCommitted, err
}
