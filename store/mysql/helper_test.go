package mysql_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/mysql"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

// database returns the data source name of a new database with the schema and a table
// of effects.
func database(t testing.TB) string {
	t.Helper()
	return migrated(t, realtest.MariaDB(t))
}

// migrated returns the data source name of a new database of the server, likewise.
func migrated(t testing.TB, server *realtest.MariaDBServer) string {
	t.Helper()
	name := server.Database(t)
	db := connect(t, name)
	if err := migrate.Up(t.Context(), db, migrate.Options{}); err != nil {
		t.Fatalf("migrate: %v", err)
	}
	mustExec(t, db, `CREATE TABLE effects (k VARCHAR(200) NOT NULL)`)
	return name
}

// newStore returns a store of the tables in db.
func newStore(t testing.TB, db *sql.DB) *mysql.Store {
	t.Helper()
	s, err := mysql.New(db, mysql.Options{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

// connect opens a database, which is closed in the end.
func connect(t testing.TB, name string) *sql.DB {
	t.Helper()
	config, err := driver.ParseDSN(name)
	if err != nil {
		t.Fatalf("parse %q: %v", name, err)
	}
	config.Logger = &driver.NopLogger{} // tests break connections
	db, err := mysql.OpenConfig(config)
	if err != nil {
		t.Fatalf("open %q: %v", name, err)
	}
	t.Cleanup(func() { db.Close() })
	return db
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
	_, err := e.ExecContext(ctx, `INSERT INTO effects (k) VALUES (?)`, key)
	return err
}

// effects counts the committed effects of key.
func effects(t testing.TB, db *sql.DB, key string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM effects WHERE k = ?`, key).Scan(&n); err != nil {
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
	results, err := s.Get(context.WithoutCancel(t.Context()), []store.ID{c.To.ID})
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return results[0].Token
}

// mustApply makes c and requires that it is applied.
func mustApply(t testing.TB, s store.Store, c store.Change) {
	t.Helper()
	results, err := s.Swap(t.Context(), []store.Change{c})
	if err != nil || !results[0].Applied(c) {
		t.Fatalf("Swap = %+v, %v, want applied", results, err)
	}
}
