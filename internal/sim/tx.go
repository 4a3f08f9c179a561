package sim

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

var errNoEnd = errors.New("the transaction was given no end")

// Atomic implements [store.TxStore].
func (s *Store) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	a, err := s.actor()
	if err != nil {
		return store.NotCommitted, err
	}
	w, row := a.w, a.w.indexOf(id)
	if a.call(op{kind: opBegin, row: row, hold: hold}) != resultOK {
		return store.NotCommitted, errLost
	}
	current := w.rows[row].current()
	if hold && w.holder(row, nil) != nil {
		w.mark(MarkBusy)
		current, hold = store.SwapResult{Busy: true}, false
	}
	a.noteResult(current)
	w.logResult(current, false)
	tx := w.open(a, row, hold)
	returned := false
	defer func() {
		if !returned {
			w.close(tx) // a panic rolls back
		}
	}()
	change, err := run(ctx, &Tx{a: a, s: tx}, current)
	if change == nil {
		returned = true
		if w.close(tx); a.status == statusDead && tx.holds() {
			w.sessions = append(w.sessions, tx) // until the server notices
			w.orphan(tx)
		}
		return store.NotCommitted, errors.Join(err, endless(err))
	}
	if err != nil {
		tx.effects, tx.writes = nil, nil
	}
	tx.change = change
	verdict, err := a.commit(tx)
	returned = true
	return verdict, err
}

func endless(err error) error {
	if err == nil {
		return errNoEnd
	}
	return nil
}

// commit sends the last statement and the commit behind it.
func (a *actor) commit(tx *session) (store.Verdict, error) {
	w := a.w
	tx.commits = true
	h := a.call(op{kind: opCommit, row: tx.row, change: *tx.change, session: tx})
	if h == resultDead {
		w.orphan(tx)
		return store.NotCommitted, store.ErrSuperseded
	}
	if h == resultAborted {
		w.mark(MarkAborted)
		w.close(tx)
		return store.NotCommitted, errAborted
	}
	if h == resultConflict {
		w.mark(MarkConflict)
		w.close(tx)
		return store.NotCommitted, store.ErrConflict
	}
	locked := h == resultUnknownLocked && w.rows[tx.row].mayChange(tx.change)
	if h == resultUnknown || locked {
		a.note(1)
		tx.orphan, tx.locked, a.unknownCommit = true, locked, true
		return store.Unknown, errLost
	}
	if !w.commit(tx) {
		return a.rolledBack()
	}
	a.note(1)
	w.logf("committed")
	return store.Committed, nil
}

// rolledBack ends a transaction whose change was not applied.
func (a *actor) rolledBack() (store.Verdict, error) {
	a.note(0)
	a.w.mark(MarkRolledBack)
	if a.taken {
		a.w.mark(MarkZombie)
	}
	a.w.logf("not applied, rolled back")
	return store.NotCommitted, store.ErrSuperseded
}

// Insert writes the effect's row. It is seen when the transaction commits.
func (tx *Tx) Insert(g grant, value string) {
	tx.s.effects = append(tx.s.effects, effect{grant: g, value: value})
}
