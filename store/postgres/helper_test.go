package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
)

// database returns the address of a new database with the schema and a table of
// effects.
func database(t testing.TB) string {
	t.Helper()
	return migrated(t, realtest.Postgres(t))
}

// migrated returns the address of a new database of the server, likewise.
func migrated(t testing.TB, server *realtest.Server) string {
	t.Helper()
	url := server.Database(t)
	pool := connect(t, url)
	if err := pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	mustExec(t, pool, `CREATE TABLE effects (key text NOT NULL)`)
	return url
}

// connect returns a pool that is closed in the end.
func connect(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("parse %q: %v", url, err)
	}
	config.MaxConns = 20
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// newStore returns a store of its own.
func newStore(t testing.TB, pool *pgxpool.Pool, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.New(pool, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
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

// effect writes that key had its effect once more.
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
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// create is the change that lets a record of key stand in the state.
func create(key string, state store.State, owner uint64) store.Change {
	return store.Change{To: store.Record{
		ID:        store.NewID("test", "scope", key),
		Token:     store.Token{State: state, Attempt: 1, Owner: owner},
		Operation: "test", Scope: "scope", Key: key, Fingerprint: []byte("fingerprint"),
	}}
}

// move takes what c lets stand to another state.
func move(c store.Change, state store.State) store.Change {
	to := c.To
	to.State = state
	return store.Change{If: c.To.Token, To: to}
}

// stands returns the token of the current record.
func stands(t testing.TB, s store.Store, c store.Change) store.Token {
	t.Helper()
	answers, err := s.Get(context.WithoutCancel(t.Context()), []store.ID{c.To.ID})
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return answers[0].Token
}

// mustForce makes the change c and requires that it is applied.
func mustForce(t testing.TB, s store.Store, c store.Change) {
	t.Helper()
	answers, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		t.Fatalf("Swap = %+v, %v, want in force", answers, err)
	}
}
