package failures_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
)

// TestLockedRowDoesNotDelayOtherRecords: while an open transaction holds one
// record, all others are claimed and ended, with and without group commit. The lock
// is released only after they have ended.
func TestLockedRowDoesNotDelayOtherRecords(t *testing.T) {
	t.Parallel()
	onWires(t, func(t *testing.T, w *wire[pgx.Tx]) {
		lockedRow(t, w, `SELECT 1 FROM semel_records WHERE id = '%x' FOR UPDATE`)
	}, func(t *testing.T, w *wire[*sql.Tx]) {
		lockedRow(t, w, `UPDATE semel_records SET tainted = 1 WHERE id = x'%x'`)
	})
}

// lockedRow locks a record with a statement that names its ID.
func lockedRow[Tx any](t *testing.T, w *wire[Tx], statement string) {
	t.Helper()
	op := semel.Define("group", semel.OperationOptions[int]{Wait: time.Hour, Policy: semel.AtLeastOnce(), Lease: time.Minute})
	call := func(key string) semel.Call { return op.Call(semel.ScopeOf("me"), key, 1) }
	held, _, err := adapter.Begin(t.Context(), w.engine, call("held"))
	check.Require(t, err)
	// At repeatable read InnoDB makes gap locks of the lock when a page splits, and refuses keys beside it.
	lock := check.Must(w.direct.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted}))(t)
	id := call("held").ID()
	check.Must(lock.ExecContext(t.Context(), fmt.Sprintf(statement, id[:])))(t)
	ended := make(chan error, 1)
	go func() { // it cannot end before the lock is released
		_, err := held.End(1, nil)
		ended <- err
	}()
	var all sync.WaitGroup
	for caller := range 64 {
		all.Go(func() {
			for i := range 20 {
				key := fmt.Sprint(caller, "/", i)
				_, replayed, err := semel.Do(t.Context(), w.engine, call(key), func(context.Context) (int, error) { return i, nil })
				if err != nil || replayed {
					t.Errorf("%s: replayed %v, %v", key, replayed, err)
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-ended:
		t.Errorf("the locked record was ended (%v) while it was locked", err)
	default:
	}
	check.Require(t, lock.Rollback())
	check.NoError(t, <-ended, "the end of the locked record")
}
