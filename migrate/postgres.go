package migrate

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/store/postgres"
)

// postgresLock is the advisory lock of a migration: a random number that no
// other program is likely to use.
const postgresLock int64 = 0x7d6b48871c4d7f1c

// Postgres creates or updates the tables of a store/postgres in pool's
// database, in the first schema of its search_path. Everything happens in one
// transaction: either all migrations are applied or none. Processes that call
// Postgres at the same time wait for each other, as long as ctx lasts, and each
// migration runs once. It uses one connection, also behind PgBouncer. If all
// migrations have run, it only reads.
func Postgres(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	d := dialect{
		name: "postgres", goose: goose.DialectPostgres, files: postgres.Schema(),
		tableExists: `SELECT to_regclass($1::text) IS NOT NULL`, lock: lockPostgres,
	}
	return d.migrate(ctx, db)
}

// lockPostgres begins a transaction and takes the advisory lock. The role's
// timeouts for statements, locks and transactions do not apply to this
// transaction, because a migration may take longer.
func lockPostgres(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `BEGIN ISOLATION LEVEL READ COMMITTED`); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, `SELECT set_config('lock_timeout', '0', true),
set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`)
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, postgresLock)
	return err
}
