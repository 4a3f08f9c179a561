package mysql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// nothing is a handler of Atomic that only makes the last change.
func nothing(last *store.Change) func(context.Context, *sql.Tx, store.SwapResult) (*store.Change, error) {
	return func(context.Context, *sql.Tx, store.SwapResult) (*store.Change, error) { return last, nil }
}

// SwapTx returns the current record at every isolation level, also if the snapshot of
// the application's transaction is older.
func TestSwapTxIsolation(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	s := newStore(t, db)
	for _, level := range []sql.IsolationLevel{
		sql.LevelDefault, sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
	} {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
		check.Require(t, err)
		var n int
		if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM effects`).Scan(&n); err != nil { // the snapshot
			t.Fatal(err)
		}
		theirs, fresh := create(level.String(), store.Succeeded, 1), create(level.String()+" fresh", store.Pending, 3)
		mustApply(t, s, theirs)
		mine := create(level.String(), store.InProgress, 2)
		zombie := move(create(level.String(), store.InProgress, 4), store.Succeeded)
		results, err := s.SwapTx(t.Context(), tx, []store.Change{mine, fresh})
		if err != nil || results[0].Token != theirs.To.Token || results[0].Record == nil || !results[1].Applied(fresh) {
			t.Errorf("%v: SwapTx = %+v, %v, want %v and applied", level, results, err, theirs.To.Token)
		}
		results, err = s.SwapTx(t.Context(), tx, []store.Change{zombie})
		if err != nil || results[0].Token != theirs.To.Token {
			t.Errorf("%v: SwapTx of a superseded end = %+v, %v, want %v", level, results, err, theirs.To.Token)
		}
		if results, err := s.Swap(t.Context(), []store.Change{create(level.String()+" fresh", store.Pending, 5)}); err != nil || !results[0].Busy {
			t.Errorf("%v: Swap beside the transaction = %+v, %v, want Busy", level, results, err)
		}
		check.NoError(t, tx.Commit(), "%v", level)
		check.Equal(t, current(t, s, fresh), fresh.To.Token, "%v: after the commit the record", level)
	}
}

// A record that another transaction holds is Busy, and ignoring that does not prevent a
// commit.
func TestSwapTxBusy(t *testing.T) {
	t.Parallel()
	db := connect(t, database(t))
	s := newStore(t, db)
	held := create("held", store.Pending, 1)
	tx, err := db.BeginTx(t.Context(), nil)
	check.Require(t, err)
	defer func() { _ = tx.Rollback() }() // it may have ended
	if results, err := s.SwapTx(t.Context(), tx, []store.Change{held}); err != nil || !results[0].Applied(held) {
		t.Fatalf("SwapTx = %+v, %v, want applied", results, err)
	}
	verdict, err := atomic(t, db, "key", func(ctx context.Context, tx *sql.Tx) error {
		results, err := s.SwapTx(ctx, tx, []store.Change{create("held", store.Pending, 2)})
		if err != nil || !results[0].Busy {
			t.Errorf("SwapTx of a held record = %+v, %v, want Busy", results, err)
		}
		return err
	})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
}
