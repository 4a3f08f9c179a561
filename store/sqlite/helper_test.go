package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/sqlite"
)

// open returns a new database file, opened by Open, with the schema and a table
// of effects.
func open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "semel.db"))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return createTables(t, db)
}

// plainSettings only make tests faster.
const plainSettings = "?_pragma=synchronous(OFF)"

// plain opens a new database with SQLite's defaults: with a rollback journal,
// deferred transactions, and no busy timeout. It does not sync, for speed.
func plain(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "plain.db")+plainSettings)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return createTables(t, db)
}

func createTables(t testing.TB, db *sql.DB) *sql.DB {
	t.Helper()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	if err := sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	mustExec(t, db, `CREATE TABLE effects (key TEXT NOT NULL)`)
	return db
}

// begin returns a transaction, which is rolled back if the test does not end it.
func begin(t testing.TB, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() }) // it may have ended
	return tx
}

// connect returns a connection, which is closed when the test ends.
func connect(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM effects WHERE key = ?`, key).Scan(&n); err != nil {
		t.Fatalf("count effects: %v", err)
	}
	return n
}

// create creates the record of key in the state.
func create(key string, state store.State, owner uint64) store.Change {
	return store.Change{To: store.Record{
		ID:        store.NewID("test", "scope", key),
		Token:     store.Token{State: state, Attempt: 1, Owner: owner},
		Operation: "test", Scope: "scope", Key: key, Fingerprint: []byte("fingerprint"),
	}}
}

// move changes the record of c to another state.
func move(c store.Change, state store.State) store.Change {
	to := c.To
	to.State = state
	return store.Change{If: c.To.Token, To: to}
}

// current returns the record's current token.
func current(t testing.TB, s store.Store, c store.Change) store.Token {
	t.Helper()
	answers, err := s.Get(context.Background(), []store.ID{c.To.ID})
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return answers[0].Token
}

// mustApply makes c and requires that it is applied.
func mustApply(t testing.TB, s store.Store, c store.Change) {
	t.Helper()
	answers, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil || !answers[0].Applied(c) {
		t.Fatalf("Swap = %+v, %v, want applied", answers, err)
	}
}
