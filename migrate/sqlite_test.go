package migrate_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/sqlite"
)

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// names lists the objects in the schema, without SQLite's own.
func names(t *testing.T, db *sql.DB) []string {
	t.Helper()
	return column[string](t, db, `SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%' ORDER BY name`)
}

func column[T any](t *testing.T, db *sql.DB, query string) []T {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// mustBeMigratedOnce requires that the tables exist and that each migration has
// run once.
func mustBeMigratedOnce(t *testing.T, db *sql.DB) {
	t.Helper()
	want := []string{"semel_due", "semel_expires", "semel_guard", "semel_migrations", "semel_notes", "semel_queue", "semel_rare", "semel_record_view", "semel_records", "semel_salt"}
	if diff := cmp.Diff(want, names(t, db)); diff != "" {
		t.Errorf("the schema differs (-want +got):\n%s", diff)
	}
	if got := column[int](t, db, `SELECT version_id FROM semel_migrations ORDER BY id`); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("versions %v are recorded, want 0 to 3, once each", got)
	}
	if _, err := sqlite.New(db).Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
}

func TestSQLite(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	for range 3 { // a second call changes nothing
		if err := migrate.SQLite(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		mustBeMigratedOnce(t, db)
	}
}

// TestSQLiteOnAPlainDatabase: a database that was opened without the store's
// settings, with one connection, used by many goroutines.
func TestSQLiteOnAPlainDatabase(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "plain.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := migrate.SQLite(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	mustBeMigratedOnce(t, db)
}

// TestSQLiteIsAtomic: after a migration that fails, because a table of its name
// exists, nothing has changed.
func TestSQLiteIsAtomic(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	mustExec(t, db, `CREATE TABLE semel_guard (mine INTEGER)`)
	if err := migrate.SQLite(t.Context(), db); err == nil {
		t.Error("SQLite = nil with another table of that name, want an error")
	}
	if got := names(t, db); !slices.Equal(got, []string{"semel_guard"}) {
		t.Errorf("after an error the schema is %v, want what it was", got)
	}
	mustExec(t, db, `DROP TABLE semel_guard`)
	if err := migrate.SQLite(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	mustBeMigratedOnce(t, db)
}

// TestSQLiteWaitsForAWriter, but no longer than ctx lasts. It does not wait if
// all migrations have run.
func TestSQLiteWaitsForAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	db, other := open(t, path), open(t, path)
	writer, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrate.SQLite(ctx, db); !errors.Is(err, context.Canceled) {
		t.Errorf("SQLite under an ended context = %v, want its error", err)
	}
	mustExec(t, db, `PRAGMA busy_timeout = 0`)
	db.SetMaxOpenConns(1)
	var waits sync.WaitGroup
	waits.Go(func() {
		if err := migrate.SQLite(t.Context(), db); err != nil {
			t.Error(err)
		}
	})
	if err := writer.Rollback(); err != nil {
		t.Error(err)
	}
	waits.Wait()
	mustBeMigratedOnce(t, db)

	writer, err = other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback() }()
	if err := migrate.SQLite(t.Context(), db); err != nil {
		t.Errorf("SQLite with nothing to do, while a writer holds the lock = %v", err)
	}
}

// TestSQLiteStopsWaitingWithItsContext: the wait for the lock ends with the
// context.
func TestSQLiteStopsWaitingWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	other := open(t, path)
	writer, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = writer.Rollback() }()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// The wait must reach the lock on a busy machine too.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := migrate.SQLite(ctx, db); !errors.Is(err, context.DeadlineExceeded) || !sqlite.IsBusy(err) {
		t.Errorf("SQLite while a writer holds the lock = %v, want the context's error and the reason of the wait", err)
	}
	if got := names(t, db); len(got) != 0 {
		t.Errorf("after the timeout the schema is %v, want nothing", got)
	}
}

// TestFilesRunByAnotherTool: other tools can run the files, up and down.
func TestFilesRunByAnotherTool(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	p, err := goose.NewProvider(goose.DialectSQLite3, db, sqlite.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.New(db).Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
	if _, err := p.DownTo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := names(t, db); !slices.Equal(got, []string{"goose_db_version"}) {
		t.Errorf("after going down the schema is %v, want no table of Semel", got)
	}
}
