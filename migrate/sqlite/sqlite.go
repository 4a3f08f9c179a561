// Package sqlite creates and updates the tables of a store/sqlite.
package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/sqlite"
)

// Options name the tables. They must be those of the store.
type Options struct {
	// Prefix begins the names of tables, indexes and views. Empty means semel_. With
	// another prefix, semel_records is PREFIXrecords, for instance.
	Prefix string
}

// Up creates or updates the tables in db. Everything happens in one transaction:
// either all migrations are applied or none. Processes may call it at the same time,
// and each migration runs once. It waits for the database's write lock as long as ctx
// lasts. If all migrations have run, it needs no lock.
func Up(ctx context.Context, db *sql.DB, o Options) error {
	prefix, err := sqlname.Prefix("Options.Prefix", o.Prefix)
	if err != nil {
		return fmt.Errorf("migrate sqlite: %w", err)
	}
	table := prefix + "migrations"
	return migrate.Up(ctx, db, migrate.Database{
		Name: "sqlite", Files: sqlite.Schema(), Prefix: prefix, Table: table,
		Exists: `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = '` + table + `'`,
		Create: `CREATE TABLE IF NOT EXISTS ` + table + ` (
  id         INTEGER   NOT NULL PRIMARY KEY,
  version_id INTEGER   NOT NULL,
  is_applied INTEGER   NOT NULL,
  tstamp     TIMESTAMP NOT NULL DEFAULT (datetime('now'))
)`,
		Begin: begin, Commit: `COMMIT`, Rollback: `ROLLBACK`,
	})
}

// begin begins a transaction that holds the database's write lock.
func begin(ctx context.Context, conn *sql.Conn) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), `BEGIN IMMEDIATE`)
		if err == nil || !sqlite.IsBusy(err) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}
