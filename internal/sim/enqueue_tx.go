package sim

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// joined is the index of the record that a function enqueues in its
// transaction.
const joined = 1

// enqueueInTx lets the function of the first record enqueue the call of the
// other one.
func (a *actor) enqueueInTx(ctx context.Context, tx *Tx, g grant) error {
	if !a.w.stage.plan.EnqueuesTx || a.ask.row == joined {
		return nil
	}
	_, err := semel.EnqueueTx(ctx, a.engine, tx, a.w.stage.call(request{row: joined, fp: a.ask.fp}), semel.EnqueueOptions{})
	if err != nil {
		a.w.noteError(g)
	}
	return err
}

// SwapTx implements [store.TxStore].
func (s *Store) SwapTx(_ context.Context, tx *Tx, changes []store.Change) ([]store.SwapResult, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	answers := make([]store.SwapResult, len(changes))
	for i := range changes {
		if answers[i], err = a.swapTx(tx.s, &changes[i]); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// swapTx writes a record, which others find Busy until the transaction has ended.
func (a *actor) swapTx(s *session, c *store.Change) (answer store.SwapResult, err error) {
	w, row := a.w, a.w.indexOf(c.To.ID)
	if a.call(op{kind: opSwapTx, row: row, change: *c, session: s}) != resultOK {
		return store.SwapResult{}, errLost
	}
	switch {
	case w.writer(row, s) != nil:
		w.mark(MarkBusy)
		answer = store.SwapResult{Busy: true}
	case w.rows[row].mayChange(c):
		s.writes = append(s.writes, *c)
		answer = store.SwapResult{Token: c.To.Token}
	case w.rows[row].rec.Token == c.To.Token:
		answer = store.SwapResult{Token: c.To.Token}
	default:
		answer = w.rows[row].current()
	}
	a.noteResult(answer)
	w.logResult(answer, answer.Applied(*c))
	return answer, nil
}

// wrote tells whether a transaction has written the record.
func (s *session) wrote(row int, w *world) bool {
	for i := range s.writes {
		if w.rows[row].id == s.writes[i].To.ID {
			return true
		}
	}
	return false
}

// holds tells whether others find something Busy until the transaction has ended.
func (s *session) holds() bool { return s.hold || s.locked || len(s.writes) > 0 }

// checkEnqueued checks I16: the enqueued call exists if and only if its
// transaction has committed.
func (w *world) checkEnqueued() {
	done, there := w.count(0, 0) > 0, w.rows[joined].rec.State != store.Absent
	if done != there {
		w.fail("I16", "the effect is there: %v, and what was enqueued with it: %v", done, there)
	}
}
