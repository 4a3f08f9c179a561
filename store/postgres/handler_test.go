package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

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
	if verdict != store.Committed || err != nil {
		t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pg_largeobject_metadata`); n != 1 {
		t.Errorf("%d large objects, want 1", n)
	}
}

// A result that the handler left open keeps its part from being ended.
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
	if n := effects(t, pool, "key"); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
	mustForce(t, s, last)
}
