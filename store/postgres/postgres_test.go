package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/postgres"
)

func TestContract(t *testing.T) {
	t.Parallel()
	t.Attr("engine", "postgres")
	pool := connect(t, database(t))
	semeltest.Run(t, func(t testing.TB) semeltest.Subject[pgx.Tx] { return subject(t, pool) })
}

// subject empties the tables: the suite needs hundreds of stores, and that is
// quicker than new databases.
func subject(t testing.TB, pool *pgxpool.Pool) semeltest.Subject[pgx.Tx] {
	t.Helper()
	mustExec(t, pool, `TRUNCATE semel_records, semel_notes, effects`)
	return semeltest.Subject[pgx.Tx]{
		Store:   newStore(t, pool, postgres.Options{}),
		Effect:  func(ctx context.Context, tx pgx.Tx, key string) error { return effect(ctx, tx, key) },
		Effects: func(key string) int { return effects(t, pool, key) },
	}
}
