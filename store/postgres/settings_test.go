package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// What the store sets for its own statements is not left to the handler's, nor to
// the triggers that run at the COMMIT.
func TestPlannerIsTheHandlers(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	trigger(t, pool, `IF current_setting('enable_seqscan') <> 'on' THEN RAISE 'the planner is not the trigger''s'; END IF`)
	stood, made := create("stood", store.InProgress, 1), create("made", store.Succeeded, 1)
	stood.To.Due = -1
	mustForce(t, s, stood)
	beat, finish := move(stood, store.InProgress), move(stood, store.Succeeded)
	for _, last := range []*store.Change{&made, &beat, &finish, nil} {
		id := store.NewID("test", "scope", "none")
		if last != nil {
			id = last.To.ID
		}
		var all string
		verdict, err := s.Atomic(t.Context(), id, true,
			func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) (*store.Change, error) {
				all = settings(t, tx)
				return last, effect(ctx, tx, "key")
			})
		if verdict != store.Committed || err != nil {
			t.Errorf("Atomic = %v, %v, want Committed", verdict, err)
		}
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, tx, `SET LOCAL lock_timeout = '10s'`)
		if want := settings(t, tx); all != want {
			t.Errorf("the handler's settings are %s, want %s", all, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A setting that is another than the last transaction's is the handler's all the
// same, whether there is a record or none.
func TestPlannerIsTheHandlersWhenItChanges(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	stood := create("stood", store.Pending, 1)
	mustForce(t, s, stood)
	name := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	for _, want := range []string{"off", "off", "on", "on", "off"} {
		mustExec(t, pool, `ALTER DATABASE `+name+` SET enable_seqscan = `+want)
		pool.Reset()
		for _, key := range []string{"none", "stood"} {
			id := store.NewID("test", "scope", key)
			if key == "stood" {
				id = stood.To.ID
			}
			var got string
			verdict, err := s.Atomic(t.Context(), id, true,
				func(ctx context.Context, tx pgx.Tx, stands store.SwapResult) (*store.Change, error) {
					if (stands.Record != nil) != (key == "stood") {
						t.Errorf("of %s stands %+v", key, stands)
					}
					return nil, tx.QueryRow(ctx, `SELECT current_setting('enable_seqscan')`).Scan(&got)
				})
			if verdict != store.Committed || err != nil || got != want {
				t.Errorf("Atomic of %s = %v, %v with enable_seqscan %s, want %s", key, verdict, err, got, want)
			}
		}
	}
}
