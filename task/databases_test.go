package task_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	pgmigrate "github.com/semelgo/semel/migrate/postgres"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/sqlite"
	"github.com/semelgo/semel/task"
)

// newPostgres returns the address of a new database. Its table of effects has
// no unique constraint, so repeated effects show.
func newPostgres(t *testing.T) string {
	t.Helper()
	url := realtest.Postgres(t).Database(t)
	pool := ledger.Pool(t, url)
	check.Require(t, pgmigrate.Up(t.Context(), pool, pgmigrate.Options{}), "migrate")
	if _, err := pool.Exec(t.Context(), `CREATE TABLE effects (key text NOT NULL, attempt int NOT NULL)`); err != nil {
		t.Fatalf("create table: %v", err)
	}
	return url
}

// insertEffect records the effect of an attempt, even if ctx has ended.
func insertEffect(ctx context.Context, tx pgx.Tx, key string, attempt uint32) error {
	_, err := tx.Exec(context.WithoutCancel(ctx), `INSERT INTO effects VALUES ($1, $2)`, key, attempt)
	return err
}

// selectEffects returns the attempts that had effects, by key.
func selectEffects(t *testing.T, pool *pgxpool.Pool) map[string][]uint32 {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT key, attempt FROM effects`)
	check.Require(t, err, "read effects")
	effects := make(map[string][]uint32)
	var key string
	var attempt uint32
	if _, err := pgx.ForEachRow(rows, []any{&key, &attempt}, func() error {
		effects[key] = append(effects[key], attempt)
		return nil
	}); err != nil {
		t.Fatalf("read effects: %v", err)
	}
	return effects
}

// newSQLite returns a new SQLite database with the same table of effects.
func newSQLite(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "semel.db"))
	check.Require(t, err, "Open")
	t.Cleanup(func() { _ = db.Close() })
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), "migrate")
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE effects (key TEXT NOT NULL, attempt INT NOT NULL)`); err != nil {
		t.Fatalf("create table: %v", err)
	}
	return db
}

// realProcess is a process over a real database.
type realProcess[Tx any] struct {
	*semel.Engine[Tx]

	worker *task.Worker
	seen   *eventLog
}

func newProcess[Tx any](t *testing.T, s store.TxStore[Tx], o task.Options, ops ...semel.Declared) *realProcess[Tx] {
	t.Helper()
	p := &realProcess[Tx]{seen: new(eventLog)}
	p.Engine = newEngine(t, s, p.seen, ops...)
	worker, err := task.New(p.Engine, o)
	check.Require(t, err, "New")
	p.worker = worker
	return p
}

// start runs the worker until the test ends. Functions that are blocked in
// block continue then.
func (p *realProcess[Tx]) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check.NoError(t, <-ended, "Run")
	})
}

// block waits until c is closed or the test is over.
func block(t *testing.T, c <-chan struct{}) {
	select {
	case <-c:
	case <-t.Context().Done():
	}
}

// sendOrEnd sends v, unless the test is over.
func sendOrEnd[T any](t *testing.T, c chan<- T, v T) {
	select {
	case c <- v:
	case <-t.Context().Done():
	}
}

func newPostgresStore(t *testing.T, pool *pgxpool.Pool) *postgres.Store {
	t.Helper()
	s, err := postgres.New(pool, postgres.Options{})
	check.Require(t, err, "New")
	return s
}

// await receives from c. The limit allows for a busy machine.
func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("timed out waiting for %s", what)
	}
	return v
}
