package migrate

import (
	"context"
	"database/sql"
	"fmt"

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
	done, err := postgresUpToDate(ctx, db)
	if err != nil {
		return fmt.Errorf("migrate postgres: %w", err)
	}
	if done {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate postgres: take a connection: %w", err)
	}
	defer conn.Close()
	if err := within(ctx, conn, lockPostgres, func() error { return upPostgres(ctx, conn) }); err != nil {
		return fmt.Errorf("migrate postgres: %w", err)
	}
	return nil
}

// postgresProvider reads the migrations; db is not used before one of them runs.
func postgresProvider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, postgres.Schema(),
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
}

// postgresUpToDate reads whether the newest migration has run.
func postgresUpToDate(ctx context.Context, db *sql.DB) (bool, error) {
	p, err := postgresProvider(db)
	if err != nil {
		return false, err
	}
	var there bool
	err = db.QueryRowContext(ctx, `SELECT to_regclass($1::text) IS NOT NULL`, versionTable).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	var version sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT max(version_id) FROM `+versionTable).Scan(&version)
	return version.Int64 >= newest, err
}

// upPostgres runs the migrations on conn, within the transaction it is in.
func upPostgres(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(driverConn any) error {
		db := share(driverConn)
		defer db.Close()
		p, err := postgresProvider(db)
		if err != nil {
			return err
		}
		_, err = p.Up(ctx)
		return err
	})
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
