package mysql_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/testchange"
	migrate "github.com/semelgo/semel/migrate/mysql"
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
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{}), "migrate")
	mustExec(t, db, `CREATE TABLE effects (k VARCHAR(200) NOT NULL)`)
	return name
}

// newStore returns a store of the tables in db.
func newStore(t testing.TB, db *sql.DB) *mysql.Store {
	t.Helper()
	s, err := mysql.New(db, mysql.Options{})
	check.Require(t, err, "New")
	return s
}

// connect opens a database, which is closed in the end.
func connect(t testing.TB, name string) *sql.DB {
	t.Helper()
	config, err := driver.ParseDSN(name)
	check.Require(t, err, "parse %q", name)
	config.Logger = &driver.NopLogger{} // tests break connections
	db, err := mysql.OpenConfig(config)
	check.Require(t, err, "open %q", name)
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
	check.Require(t, db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM effects WHERE k = ?`, key).Scan(&n), "count effects")
	return n
}

// The changes that the tests make.
var (
	create    = testchange.Create
	move      = testchange.Move
	current   = testchange.Current
	mustApply = testchange.Apply
)
