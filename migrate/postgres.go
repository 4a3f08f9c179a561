package migrate

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/store/postgres"
)

// postgresLock is the advisory lock of those who migrate: a number that nobody
// else is likely to have drawn.
const postgresLock int64 = 0x7d6b48871c4d7f1c

// Postgres brings the tables of a store/postgres in pool's database up to date, in
// the first schema of its search_path. All of it happens in one transaction: it is
// done wholly or not at all, and not a second time when several processes call it
// at once, which wait for each other as long as ctx lasts. It needs no more than
// one connection, also behind PgBouncer. When there is nothing to do it only reads.
func Postgres(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	d := dialect{
		name: "postgres", goose: goose.DialectPostgres, files: postgres.Schema(),
		tableExists: `SELECT to_regclass($1::text) IS NOT NULL`, lock: lockPostgres,
	}
	return d.migrate(ctx, db)
}

// lockPostgres begins a transaction that has the lock of those who migrate. What
// the server allows a statement or a transaction at most is not for this one.
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
