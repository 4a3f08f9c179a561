package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// TestOptimisticEngines: no caller takes the right to the record, so all run at the
// same time. One commits; the others are rolled back and answer from the record.
func TestOptimisticEngines(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	call := optimistic().Call(semel.Shared(), "k", "in")
	const engines = 4
	var together, all sync.WaitGroup // all have run once before any may commit
	together.Add(engines)
	answers, replays := make(chan int, engines), make(chan bool, engines)
	for n := range engines {
		engine := optimist(t, pool, postgres.Options{})
		first := sync.OnceFunc(together.Done)
		all.Go(func() {
			defer first() // also if no run of this one came so far
			v, replayed, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx pgx.Tx) (int, error) {
				err := effect(ctx, tx, fmt.Sprint(n))
				first()
				together.Wait()
				return n, err
			})
			check.NoError(t, err, "DoTx")
			answers <- v
			replays <- replayed
		})
	}
	all.Wait()
	winner, led, there := <-answers, 0, 0
	for range engines - 1 {
		check.Equal(t, <-answers, winner, "answered %d and", winner)
	}
	for n := range engines {
		if !<-replays {
			led++
		}
		there += effects(t, pool, fmt.Sprint(n))
	}
	if led != 1 || there != 1 || effects(t, pool, fmt.Sprint(winner)) != 1 {
		t.Errorf("%d led and %d effects are there, want one, of %d", led, there, winner)
	}
}

// TestOptimisticIsolation: above read committed it is refused, and nothing is run.
func TestOptimisticIsolation(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	for _, level := range levels() {
		engine := optimist(t, pool, postgres.Options{Isolation: level})
		_, _, err := semel.DoTx(t.Context(), engine, optimistic().Call(semel.Shared(), "k", "in"), func(context.Context, pgx.Tx) (int, error) {
			t.Errorf("at %q: it was run", level)
			return 0, nil
		})
		check.ErrorIs(t, err, postgres.ErrIsolation, "at %q: DoTx", level)
	}
}

func optimistic() *semel.Operation[string] {
	return semel.Define("op", semel.OperationOptions[string]{Optimistic: true})
}

// optimist returns an engine over a store of its own.
func optimist(t *testing.T, pool *pgxpool.Pool, o postgres.Options) *semel.Engine[pgx.Tx] {
	t.Helper()
	engine := check.Must(semel.New(newStore(t, pool, o), semel.Options{Survive: store.NoFailure}))(t)
	t.Cleanup(func() {
		check.NoError(t, engine.Close(context.WithoutCancel(t.Context())), "Close")
	})
	return engine
}
