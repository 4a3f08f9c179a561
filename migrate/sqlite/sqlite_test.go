package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	sqlitemigrate "github.com/semelgo/semel/migrate/sqlite"
	"github.com/semelgo/semel/store/sqlite"
)

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db := check.Must(sqlite.Open(path))(t)
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
	rows := check.Must(db.QueryContext(t.Context(), query))(t)
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		check.Require(t, rows.Scan(&one))
		all = append(all, one)
	}
	check.Require(t, rows.Err())
	return all
}

// mustBeMigratedOnce requires that the tables of each prefix exist, and no others, and
// that each migration has run once.
func mustBeMigratedOnce(t *testing.T, db *sql.DB, prefixes ...string) {
	t.Helper()
	if prefixes == nil {
		prefixes = []string{"semel_"}
	}
	var want []string
	for _, prefix := range prefixes {
		for _, name := range []string{"due", "expires", "guard", "migrations", "notes", "outbox", "outbox_lane", "outbox_notes", "outbox_parked", "queue", "rare", "record_view", "records", "salt"} {
			want = append(want, prefix+name)
		}
		if got := column[int](t, db, `SELECT version_id FROM `+prefix+`migrations ORDER BY id`); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
			t.Errorf("versions %v are recorded, want 1 to 5, once each", got)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, db)); diff != "" {
		t.Errorf("the schema differs (-want +got):\n%s", diff)
	}
	if _, err := sqlite.New(db, sqlite.Options{}).Capabilities(t.Context()); err != nil {
		t.Errorf("the store returns %v", err)
	}
}

func TestUp(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	for range 3 { // a second call changes nothing
		check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
		mustBeMigratedOnce(t, db)
	}
}

// TestUpOnAPlainDatabase: a database that was opened without the store's
// settings, with one connection, used by many goroutines.
func TestUpOnAPlainDatabase(t *testing.T) {
	db := check.Must(sql.Open("sqlite", filepath.Join(t.TempDir(), "plain.db")))(t)
	defer db.Close()
	db.SetMaxOpenConns(1)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			check.NoError(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
		})
	}
	all.Wait()
	mustBeMigratedOnce(t, db)
}

// TestUpIsAtomic: after a migration that fails, because a table of its name
// exists, nothing has changed.
func TestUpIsAtomic(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	mustExec(t, db, `CREATE TABLE semel_guard (mine INTEGER)`)
	check.Fails(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), "Up with another table of that name")
	if got := names(t, db); !slices.Equal(got, []string{"semel_guard"}) {
		t.Errorf("after an error the schema is %v, want what it was", got)
	}
	mustExec(t, db, `DROP TABLE semel_guard`)
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	mustBeMigratedOnce(t, db)
}

// TestUpWaitsForAWriter, but no longer than ctx lasts. It does not wait if
// all migrations have run.
func TestUpWaitsForAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	db, other := open(t, path), open(t, path)
	writer := check.Must(other.BeginTx(t.Context(), nil))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Up under an ended context = %v, want its error", err)
	}
	mustExec(t, db, `PRAGMA busy_timeout = 0`)
	db.SetMaxOpenConns(1)
	var waits sync.WaitGroup
	waits.Go(func() {
		check.NoError(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	})
	check.NoError(t, writer.Rollback())
	waits.Wait()
	mustBeMigratedOnce(t, db)

	writer = check.Must(other.BeginTx(t.Context(), nil))(t)
	defer func() { _ = writer.Rollback() }()
	check.NoError(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}), "Up with nothing to do, while a writer holds the lock")
}

// TestUpStopsWaitingWithItsContext: the wait for the lock ends with the
// context.
func TestUpStopsWaitingWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	other := open(t, path)
	writer := check.Must(other.BeginTx(t.Context(), nil))(t)
	defer func() { _ = writer.Rollback() }()
	db := check.Must(sql.Open("sqlite", path))(t)
	defer db.Close()
	// On a busy machine the context can end before Up reaches the lock. Then it gets more time.
	for bound, waited := 100*time.Millisecond, false; !waited; bound *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		err := sqlitemigrate.Up(ctx, db, sqlitemigrate.Options{})
		cancel()
		waited = sqlite.IsBusy(err)
		if !errors.Is(err, context.DeadlineExceeded) || !waited && bound > time.Minute {
			t.Fatalf("Up while a writer holds the lock = %v, want the context's error and the reason of the wait", err)
		}
	}
	if got := names(t, db); len(got) != 0 {
		t.Errorf("after the timeout the schema is %v, want nothing", got)
	}
}

// gooseTable is the table that earlier versions of Semel wrote, by goose.
const gooseTable = `CREATE TABLE semel_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  version_id INTEGER NOT NULL,
  is_applied INTEGER NOT NULL,
  tstamp TIMESTAMP DEFAULT (datetime('now'))
);
INSERT INTO semel_migrations (version_id, is_applied) VALUES (0, 1), (1, 1);`

// TestTableOfAnEarlierVersion: the migrations that an earlier version recorded do not
// run again.
func TestTableOfAnEarlierVersion(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	first := check.Must(fs.ReadFile(sqlite.Schema(), "00001_records.up.sql"))(t)
	mustExec(t, db, string(first)+gooseTable)
	check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{}))
	if got := column[int](t, db, `SELECT version_id FROM semel_migrations ORDER BY id`); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("versions %v are recorded, want 0 to 5, once each", got)
	}
}

// TestPrefix: tables with another prefix, beside those with the default one.
func TestPrefix(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "semel.db"))
	for _, prefix := range []string{"", "app_", "app_"} {
		check.Require(t, sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{Prefix: prefix}))
	}
	mustBeMigratedOnce(t, db, "semel_", "app_")
	if err := sqlitemigrate.Up(t.Context(), db, sqlitemigrate.Options{Prefix: "a-"}); err == nil || !strings.Contains(err.Error(), "Options.Prefix") {
		t.Errorf("Up = %v, want an error that names Options.Prefix", err)
	}
}
