package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Serializable operations that read what the others write are retried when PostgreSQL aborts
// one. Together they have the effects of a serial order, and each key has one effect.
func TestEngineAboveReadCommitted(t *testing.T) {
	t.Parallel()
	for _, level := range levels() {
		pool := connect(t, database(t))
		mustExec(t, pool, `CREATE TABLE counter AS SELECT 0 AS n`)
		engine := check.Must(semel.New(newStore(t, pool, postgres.Options{Isolation: level}), semel.Options{Survive: store.NoFailure}))(t)
		count := semel.Define("count", semel.OperationOptions[int]{})
		const keys, callers = 4, 3
		runs := make(chan struct{}, 1000)
		var all sync.WaitGroup
		for i := range keys * callers {
			all.Go(func() {
				call := count.Call(semel.Shared(), fmt.Sprint(i%keys), 1)
				for { // DoTx fails when other transactions blocked it for too long
					_, _, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
						runs <- struct{}{}
						var n int
						if err := tx.QueryRow(ctx, `SELECT n FROM counter`).Scan(&n); err != nil {
							return 0, err
						}
						_, err := tx.Exec(ctx, `UPDATE counter SET n = $1`, n+1)
						return n + 1, err
					})
					if err == nil {
						return
					}
					if t.Context().Err() != nil {
						t.Errorf("DoTx = %v", err)
						return
					}
				}
			})
		}
		all.Wait()
		check.Equal(t, one[int](t, pool, `SELECT n FROM counter`), keys, "at %q: %d keys were counted as: in %d runs", level, keys, len(runs))
		check.NoError(t, engine.Close(t.Context()))
	}
}

// A replay writes nothing and locks nothing, for one caller and for many at the same time.
func TestARepeatLeavesTheRecordAsItIs(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	engine := check.Must(semel.New(newStore(t, pool, postgres.Options{}), semel.Options{Survive: store.NoFailure}))(t)
	call := semel.Define("pay", semel.OperationOptions[int]{}).Call(semel.Shared(), "k", 1)
	do := func() {
		if _, _, err := semel.Do(t.Context(), engine, call, func(context.Context) (int, error) { return 7, nil }); err != nil {
			t.Error(err)
		}
	}
	do()
	const row = `SELECT concat(ctid, ' ', xmin, ' ', xmax) FROM semel_records`
	before := one[string](t, pool, row)
	for range 20 {
		do()
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 5 {
				do()
			}
		})
	}
	all.Wait()
	check.Equal(t, one[string](t, pool, row), before, "the record was at %s, and is at", before)
	check.NoError(t, engine.Close(t.Context()))
}
