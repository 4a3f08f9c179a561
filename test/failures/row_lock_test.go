package failures_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// TestLockedRowDoesNotDelayOtherRecords: while an open transaction holds one
// record, all others are claimed and ended, with and without group commit. The lock
// is released only after they have ended.
func TestLockedRowDoesNotDelayOtherRecords(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	p := ledger.Pool(t, realtest.Postgres(t).Database(t))
	check.Require(t, pgmigrate.Up(t.Context(), p, pgmigrate.Options{}))
	e := groupEngine(t, p)
	op := semel.Define("group", semel.OperationOptions[int]{Wait: time.Hour, Policy: semel.AtLeastOnce(), Lease: time.Minute})
	call := func(key string) semel.Call { return op.Call(semel.ScopeOf("me"), key, 1) }
	held, _, err := adapter.Begin(t.Context(), e, call("held"))
	check.Require(t, err)
	lock, err := p.Begin(t.Context())
	check.Require(t, err)
	id := call("held").ID()
	check.Must(lock.Exec(t.Context(), `SELECT 1 FROM semel_records WHERE id = $1 FOR UPDATE`, id.String()))(t)
	ended := make(chan error, 1)
	go func() { // it cannot end before the lock is released
		_, err := held.End(1, nil)
		ended <- err
	}()
	otherRecords(t, e, call)
	select {
	case err := <-ended:
		t.Errorf("the locked record was ended (%v) while it was locked", err)
	default:
	}
	check.Require(t, lock.Rollback(t.Context()))
	check.NoError(t, <-ended, "the end of the locked record")
}

// otherRecords has 64 callers run twenty operations each.
func otherRecords[Tx any](t *testing.T, e *semel.Engine[Tx], call func(key string) semel.Call) {
	t.Helper()
	var all sync.WaitGroup
	for caller := range 64 {
		all.Go(func() {
			for i := range 20 {
				key := fmt.Sprint(caller, "/", i)
				_, replayed, err := semel.Do(t.Context(), e, call(key), func(context.Context) (int, error) { return i, nil })
				if err != nil || replayed {
					t.Errorf("%s: replayed %v, %v", key, replayed, err)
				}
			}
		})
	}
	all.Wait()
}

func groupEngine(t *testing.T, p *pgxpool.Pool) *semel.Engine[pgx.Tx] {
	t.Helper()
	s := check.Must(postgres.New(p, postgres.Options{}))(t)
	e := check.Must(semel.New(s, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute}))(t)
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}
