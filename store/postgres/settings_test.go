package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// The settings of the store's own statements do not apply to the handler's statements or to
// triggers that run at the COMMIT.
func TestPlannerIsTheHandlers(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	trigger(t, pool, `IF current_setting('enable_seqscan') <> 'on' THEN RAISE 'the planner is not the trigger''s'; END IF`)
	existing, made := create("stored", store.InProgress, 1), create("made", store.Succeeded, 1)
	existing.To.Due = -1
	mustForce(t, s, existing)
	beat, finish := move(existing, store.InProgress), move(existing, store.Succeeded)
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
		check.Result(verdict, err)(t, store.Committed, "Atomic")
		tx, err := pool.Begin(t.Context())
		check.Require(t, err)
		mustExec(t, tx, `SET LOCAL lock_timeout = '10s'`)
		if want := settings(t, tx); all != want {
			t.Errorf("the handler's settings are %s, want %s", all, want)
		}
		check.Require(t, tx.Rollback(t.Context()))
	}
}

// A handler sees the settings of its own connection, also if the previous transaction had
// others, with and without a record.
func TestPlannerIsTheHandlersWhenItChanges(t *testing.T) {
	t.Parallel()
	pool := connect(t, database(t))
	s := newStore(t, pool, postgres.Options{})
	existing := create("stored", store.Pending, 1)
	mustForce(t, s, existing)
	name := pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize()
	for _, want := range []string{"off", "off", "on", "on", "off"} {
		mustExec(t, pool, `ALTER DATABASE `+name+` SET enable_seqscan = `+want)
		pool.Reset()
		for _, key := range []string{"none", "stored"} {
			id := store.NewID("test", "scope", key)
			if key == "stored" {
				id = existing.To.ID
			}
			var got string
			verdict, err := s.Atomic(t.Context(), id, true,
				func(ctx context.Context, tx pgx.Tx, found store.SwapResult) (*store.Change, error) {
					if (found.Record != nil) != (key == "stored") {
						t.Errorf("of %s the current record is %+v", key, found)
					}
					return nil, tx.QueryRow(ctx, `SELECT current_setting('enable_seqscan')`).Scan(&got)
				})
			if verdict != store.Committed || err != nil || got != want {
				t.Errorf("Atomic of %s = %v, %v with enable_seqscan %s, want %s", key, verdict, err, got, want)
			}
		}
	}
}
