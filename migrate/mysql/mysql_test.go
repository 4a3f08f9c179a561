package mysql_test

import (
	"database/sql"
	"os"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	migrate "github.com/semelgo/semel/migrate/mysql"
	"github.com/semelgo/semel/store/mysql"
)

func TestMain(m *testing.M) { os.Exit(realtest.Main(m)) }

func open(t *testing.T, name string) *sql.DB {
	t.Helper()
	db := check.Must(mysql.Open(name))(t)
	t.Cleanup(func() { db.Close() })
	return db
}

func mustHaveTables(t *testing.T, db *sql.DB, want string) {
	t.Helper()
	var tables string
	err := db.QueryRowContext(t.Context(), `SELECT group_concat(table_name ORDER BY table_name SEPARATOR ' ')
FROM information_schema.tables WHERE table_schema = database()`).Scan(&tables)
	check.Result(tables, err)(t, want, "the tables")
}

// Processes that migrate at the same time run each migration once.
func TestUpConcurrently(t *testing.T) {
	name := realtest.MariaDB(t).Database(t)
	var all sync.WaitGroup
	for range 4 {
		db := open(t, name)
		all.Go(func() {
			check.NoError(t, migrate.Up(t.Context(), db, migrate.Options{}), "Up")
		})
	}
	all.Wait()
	db := open(t, name)
	mustHaveTables(t, db, "semel_guard semel_migrations semel_notes semel_outbox semel_outbox_parked semel_records semel_record_view semel_salt")
	mustBeOnce(t, db)
}

func mustBeOnce(t *testing.T, db *sql.DB) {
	t.Helper()
	var runs, versions int
	err := db.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT version_id) FROM semel_migrations`).Scan(&runs, &versions)
	if err != nil || runs != versions || runs == 0 {
		t.Errorf("%d migrations of %d versions are recorded, %v, want each once", runs, versions, err)
	}
}

// A prefix names all tables, and tables with different prefixes are independent.
func TestUpWithPrefix(t *testing.T) {
	db := open(t, realtest.MariaDB(t).Database(t))
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{Prefix: "app_"}))
	mustHaveTables(t, db, "app_guard app_migrations app_notes app_outbox app_outbox_parked app_records app_record_view app_salt")
	check.Fails(t, migrate.Up(t.Context(), db, migrate.Options{Prefix: "App-"}), "Up with the prefix App-")
}

// A migration that was interrupted continues.
func TestUpAfterInterruption(t *testing.T) {
	db := open(t, realtest.MariaDB(t).Database(t))
	for range 2 {
		check.Require(t, migrate.Up(t.Context(), db, migrate.Options{}))
		for _, text := range []string{`DELETE FROM semel_migrations`, `DROP TABLE semel_guard`} {
			check.Must(db.ExecContext(t.Context(), text))(t)
		}
	}
	check.Require(t, migrate.Up(t.Context(), db, migrate.Options{}))
	mustHaveTables(t, db, "semel_guard semel_migrations semel_notes semel_outbox semel_outbox_parked semel_records semel_record_view semel_salt")
}
