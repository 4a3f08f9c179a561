package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// TestOptimisticEngines: without a right to the record only the write lock
// separates transactions. One effect is committed, and all callers get the same
// answer.
func TestOptimisticEngines(t *testing.T) {
	t.Parallel()
	db := open(t)
	op := semel.Define("op", semel.OperationOptions[string]{Optimistic: true, Wait: time.Minute})
	const engines = 4
	call := op.Call(semel.Shared(), "k", "in")
	var all sync.WaitGroup
	answers := make(chan int, engines)
	for n := range engines {
		engine := check.Must(semel.New(sqlite.New(db, sqlite.Options{}), semel.Options{Survive: store.NoFailure}))(t)
		all.Go(func() {
			v, _, err := semel.DoTx(t.Context(), engine, call, func(ctx context.Context, tx *sql.Tx) (int, error) {
				return n, effect(ctx, tx, fmt.Sprint(n))
			})
			check.NoError(t, err, "DoTx")
			answers <- v
			if err := engine.Close(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	winner, there := <-answers, 0
	for range engines - 1 {
		check.Equal(t, <-answers, winner, "answered %d and", winner)
	}
	for n := range engines {
		there += effects(t, db, fmt.Sprint(n))
	}
	if there != 1 || effects(t, db, fmt.Sprint(winner)) != 1 {
		t.Errorf("%d effects are there, want one, of %d", there, winner)
	}
}
