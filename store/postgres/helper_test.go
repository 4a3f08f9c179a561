package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/testchange"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store/postgres"
)

// database returns the address of a new database with the schema and a table of
// effects.
func database(t testing.TB) string {
	t.Helper()
	return migrated(t, realtest.Postgres(t))
}

// migrated returns the address of a new database of the server, with the same tables.
func migrated(t testing.TB, server *realtest.Server) string {
	t.Helper()
	url := server.Database(t)
	pool := connect(t, url)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "migrate")
	mustExec(t, pool, `CREATE TABLE effects (key text NOT NULL)`)
	return url
}

// connect returns a pool that is closed in the end.
func connect(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	check.Require(t, err, "parse %q", url)
	config.MaxConns = 20
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	check.Require(t, err, "connect")
	t.Cleanup(pool.Close)
	return pool
}

// newStore returns a store of its own.
func newStore(t testing.TB, pool *pgxpool.Pool, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.New(pool, o)
	check.Require(t, err, "New")
	t.Cleanup(s.CloseSessions)
	return s
}

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func mustExec(t testing.TB, e execer, sql string, args ...any) {
	t.Helper()
	if _, err := e.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// effect inserts one more effect of key.
func effect(ctx context.Context, tx pgx.Tx, key string) error {
	_, err := tx.Exec(ctx, `INSERT INTO effects (key) VALUES ($1)`, key)
	return err
}

// effects counts the committed effects of key.
func effects(t testing.TB, pool *pgxpool.Pool, key string) int {
	t.Helper()
	return one[int](t, pool, `SELECT count(*) FROM effects WHERE key = $1`, key)
}

// one reads one value.
func one[T any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(context.WithoutCancel(t.Context()), sql, args...)
	check.Require(t, err, "%s", sql)
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	check.Require(t, err, "%s", sql)
	return value
}

// The changes that the tests make.
var (
	create    = testchange.Create
	move      = testchange.Move
	current   = testchange.Current
	mustForce = testchange.Apply
)
