package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/testchange"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

// open returns a new database file, opened by Open, with the schema and a table
// of effects.
func open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "semel.db"))
	check.Require(t, err, "Open")
	return createTables(t, db)
}

// plainSettings only make tests faster.
const plainSettings = "?_pragma=synchronous(OFF)"

// plain opens a new database with SQLite's defaults: with a rollback journal,
// deferred transactions, and no busy timeout. It does not sync, for speed.
func plain(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "plain.db")+plainSettings)
	check.Require(t, err, "open")
	return createTables(t, db)
}

func createTables(t testing.TB, db *sql.DB) *sql.DB {
	t.Helper()
	t.Cleanup(func() {
		check.NoError(t, db.Close(), "close")
	})
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), "migrate")
	mustExec(t, db, `CREATE TABLE effects (key TEXT NOT NULL)`)
	return db
}

// begin returns a transaction, which is rolled back if the test does not end it.
func begin(t testing.TB, db *sql.DB) *sql.Tx {
	t.Helper()
	tx := check.Must(db.BeginTx(context.Background(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() }) // it may have ended
	return tx
}

// connect returns a connection, which is closed when the test ends.
func connect(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	conn := check.Must(db.Conn(t.Context()))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// execer is a database, a connection or a transaction.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func mustExec(t testing.TB, e execer, query string, args ...any) {
	t.Helper()
	if _, err := e.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// effect writes one more effect of key.
func effect(ctx context.Context, e execer, key string) error {
	_, err := e.ExecContext(ctx, `INSERT INTO effects (key) VALUES (?)`, key)
	return err
}

// effects counts the committed effects of key.
func effects(t testing.TB, db *sql.DB, key string) int {
	t.Helper()
	var n int
	check.Require(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM effects WHERE key = ?`, key).Scan(&n), "count effects")
	return n
}

// The changes that the tests make.
var (
	create    = testchange.Create
	move      = testchange.Move
	current   = testchange.Current
	mustApply = testchange.Apply
)
