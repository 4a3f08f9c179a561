package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// What begins the next transaction may be gone from a connection: then that one begins
// by itself, and those after it as before.
func TestNextPreparedAnew(t *testing.T) {
	t.Parallel()
	s, others := inTurns(t, postgres.Options{})
	turns := several(9)
	turns[3].run = func(ctx context.Context, tx pgx.Tx, _ store.SwapResult) error {
		var name string
		const begins = `SELECT name FROM pg_prepared_statements WHERE name LIKE 'semel%' AND statement LIKE '%''lock_timeout'', ''50ms''%'`
		if err := tx.QueryRow(ctx, begins).Scan(&name); err != nil {
			return err
		}
		mustExec(t, tx, `DEALLOCATE `+name)
		return effect(ctx, tx, "3")
	}
	before := s.Pool().Stat().AcquireCount()
	sortRanked(t, s, turns...)
	mustCommit(t, others, turns...)
	// The first two, the one after that is gone, and the one that was to begin without.
	if got := s.Pool().Stat().AcquireCount() - before; got != 4+1 {
		t.Errorf("%d turns have taken a connection %d times, want 5", len(turns), got)
	}
}
