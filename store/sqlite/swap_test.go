package sqlite_test

import (
	"testing"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// A transaction of another database is rejected, not written to.
func TestSwapTxOfAnotherDatabase(t *testing.T) {
	mine, theirs := open(t), open(t)
	tx := begin(t, theirs)
	c := create("key", store.Pending, 1)
	if answers, err := sqlite.New(mine, sqlite.Options{}).SwapTx(t.Context(), tx, []store.Change{c}); err == nil {
		t.Errorf("SwapTx = %+v, want an error", answers)
	}
	if answers, err := sqlite.New(mine, sqlite.Options{}).SwapTx(t.Context(), nil, []store.Change{c}); err == nil {
		t.Errorf("SwapTx without a transaction = %+v, want an error", answers)
	}
}

// A caller's transaction that has read first cannot write after another one has
// written. It is not Busy, because a retry does not help.
func TestSwapTxAfterALostSnapshot(t *testing.T) {
	db := plain(t)
	mustExec(t, db, `PRAGMA journal_mode = WAL`)
	s := sqlite.New(db, sqlite.Options{})
	tx := begin(t, db)
	var n int
	if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, create("somebody else", store.Pending, 1))
	answers, err := s.SwapTx(t.Context(), tx, []store.Change{create("mine", store.Pending, 1)})
	if err == nil {
		t.Errorf("SwapTx on an old snapshot = %+v, want an error", answers)
	}
}

// If another transaction has the lock, the caller's transaction gets Busy.
func TestSwapTxBusy(t *testing.T) {
	db := plain(t)
	s := sqlite.New(db, sqlite.Options{})
	tx := begin(t, db)
	other := connect(t, db)
	mustExec(t, other, `BEGIN IMMEDIATE`)
	c := create("key", store.Pending, 1)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Busy {
		t.Errorf("SwapTx beside a writer = %+v, %v, want Busy", answers, err)
	}
	mustExec(t, other, `ROLLBACK`)
	if answers, err := s.SwapTx(t.Context(), tx, []store.Change{c}); err != nil || !answers[0].Applied(c) {
		t.Errorf("repeated SwapTx = %+v, %v, want applied", answers, err)
	}
}
