package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/sqlite"
)

func open(t *testing.T) *sql.DB {
	t.Helper()
	db := check.Must(sqlite.Open(filepath.Join(t.TempDir(), "semel.db")))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

// over returns a description of a SQLite database with the files, which are given as
// names and texts in turn.
func over(files ...string) migrate.Database {
	all := fstest.MapFS{}
	for pair := range slices.Chunk(files, 2) {
		all[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
	}
	return migrate.Database{
		Name: "test", Files: all, Prefix: "semel_", Table: "migrations",
		Exists: `SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'migrations'`,
		Create: `CREATE TABLE IF NOT EXISTS migrations (version_id INTEGER, is_applied INTEGER)`,
		Begin: func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`)
			return err
		},
		Commit: `COMMIT`, Rollback: `ROLLBACK`,
	}
}

// created lists the tables of the database.
func created(t *testing.T, db *sql.DB) string {
	t.Helper()
	var all sql.NullString
	check.Require(t, db.QueryRowContext(t.Context(), `SELECT group_concat(name, ' ' ORDER BY name) FROM sqlite_schema`).Scan(&all))
	return all.String
}

// TestStatements: a file is run statement by statement.
func TestStatements(t *testing.T) {
	db := open(t)
	d := over("1_a.sql", "-- A comment;\n\nCREATE TABLE a ( -- ; inside\n  x TEXT\n);\n-- Another.\nINSERT INTO a VALUES ('--;'\n);\nCREATE TABLE b (y)")
	check.Require(t, migrate.Up(t.Context(), db, d))
	if got := created(t, db); got != "a b migrations" {
		t.Errorf("the tables are %s, want a, b and migrations", got)
	}
}

// TestPrefix: the names of the files' tables get the prefix.
func TestPrefix(t *testing.T) {
	db := open(t)
	d := over("1_a.sql", "CREATE TABLE semel_a (x);")
	d.Prefix = "app_"
	check.Require(t, migrate.Up(t.Context(), db, d))
	if got := created(t, db); got != "app_a migrations" {
		t.Errorf("the tables are %s, want app_a and migrations", got)
	}
}

// TestInvalidFileNames: the number of each file must be positive and greater than the
// number before it.
func TestInvalidFileNames(t *testing.T) {
	db := open(t)
	for _, d := range []migrate.Database{
		over("records.sql", ""), over("0_records.sql", ""), over("x1_records.sql", ""),
		over("1_a.sql", "", "01_b.sql", ""), over("10_a.sql", "", "9_b.sql", ""),
	} {
		if err := migrate.Up(t.Context(), db, d); err == nil || !strings.HasPrefix(err.Error(), "migrate test: the ") {
			t.Errorf("Up = %v, want an error about the name of a file", err)
		}
	}
}

// TestWithoutTransactions: if the database cannot create tables in a transaction, each
// migration is recorded when it has run, and the next call goes on after it.
func TestWithoutTransactions(t *testing.T) {
	db := open(t)
	const first, second = "CREATE TABLE a (x);", "CREATE TABLE IF NOT EXISTS b (x);\nCREATE TABLE c (x) wrong;"
	const release = `CREATE TABLE released (x)`
	d := over("1_a.sql", first, "2_b.sql", second)
	d.Begin, d.Commit, d.Rollback = func(context.Context, *sql.Conn) error { return nil }, `DROP TABLE released`, release
	err := migrate.Up(t.Context(), db, d)
	if err == nil || !strings.HasPrefix(err.Error(), "migrate test: 2_b.sql: statement 2: ") {
		t.Errorf("Up = %v, want an error that names the file and the statement", err)
	}
	if got := created(t, db); got != "a b migrations released" {
		t.Errorf("the tables are %s, want a, b, migrations, and that the lock is released", got)
	}
	mended := over("1_a.sql", first, "2_b.sql", "CREATE TABLE IF NOT EXISTS b (x);\nCREATE TABLE c (x);")
	mended.Begin, mended.Commit, mended.Rollback = d.Begin, d.Commit, d.Rollback
	check.Require(t, migrate.Up(t.Context(), db, mended))
	if got := created(t, db); got != "a b c migrations" {
		t.Errorf("the tables are %s, want a, b, c and migrations", got)
	}
}

// TestContextEnds: if the context ends after the lock has been taken, nothing has
// changed, and the connection is not left in the transaction.
func TestContextEnds(t *testing.T) {
	db := open(t)
	db.SetMaxOpenConns(1)
	ctx, cancel := context.WithCancel(t.Context())
	d := over("1_a.sql", "CREATE TABLE a (x);")
	begin := d.Begin
	d.Begin = func(ctx context.Context, conn *sql.Conn) error {
		defer cancel()
		return begin(ctx, conn)
	}
	if err := migrate.Up(ctx, db, d); !errors.Is(err, context.Canceled) {
		t.Errorf("Up = %v, want the error of the context", err)
	}
	if got := created(t, db); got != "" {
		t.Errorf("the tables are %s, want none", got)
	}
	d.Begin = begin
	check.NoError(t, migrate.Up(t.Context(), db, d), "Up after that")
}

// TestLockLost: a process that loses its lock before the n-th statement executes neither
// that statement nor a later one. Above all, it does not record the migration.
func TestLockLost(t *testing.T) {
	for n, want := range []string{"migrations", "a migrations", "a b migrations"} {
		db := open(t)
		d := over("1_a.sql", "CREATE TABLE a (x);\nCREATE TABLE b (x);")
		d.Begin = func(context.Context, *sql.Conn) error { return nil }
		d.Commit, d.Rollback = `SELECT 1`, `SELECT 1`
		calls, lost := 0, errors.New("lost")
		d.Hold = func(context.Context, *sql.Conn) error {
			calls++
			if calls > n {
				return lost
			}
			return nil
		}
		if err := migrate.Up(t.Context(), db, d); !errors.Is(err, lost) {
			t.Errorf("Up that loses its lock before statement %d = %v, want the error of Hold", n+1, err)
		}
		check.Equal(t, created(t, db), want, "the tables")
		var records int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM migrations`).Scan(&records); err != nil || records != 0 {
			t.Errorf("%d migrations are recorded, %v, want none", records, err)
		}
	}
}
