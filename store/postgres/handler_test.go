package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// Large objects work within the transaction.
func TestHandlerUsesLargeObjects(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			objects := tx.LargeObjects()
			oid, err := objects.Create(ctx, 0)
			if err != nil {
				return nil, err
			}
			object, err := objects.Open(ctx, oid, pgx.LargeObjectModeWrite)
			if err != nil {
				return nil, err
			}
			_, err = object.Write([]byte("large"))
			return &last, errors.Join(err, object.Close())
		})
	check.Result(verdict, err)(t, store.Committed, "Atomic")
	check.Equal(t, one[int](t, pool, `SELECT count(*) FROM pg_largeobject_metadata`), 1, "large objects")
}

// A handler that returns with open rows is rolled back, and the connection stays usable.
func TestHandlerLeavesAResultOpen(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	last := create("key", store.Succeeded, 1)
	verdict, err := s.Atomic(t.Context(), last.To.ID, true,
		func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
			rows, err := tx.Query(ctx, `INSERT INTO effects SELECT 'key' FROM generate_series(1, 9) RETURNING key`)
			if err == nil && !rows.Next() {
				t.Error("no row")
			}
			return &last, err
		})
	if verdict != store.NotCommitted || err == nil || errors.Is(err, postgres.ErrEnded) {
		t.Errorf("Atomic = %v, %v, want NotCommitted and an error that is not ErrEnded", verdict, err)
	}
	check.Equal(t, effects(t, pool, "key"), 0, "effects")
	mustForce(t, s, last)
}
