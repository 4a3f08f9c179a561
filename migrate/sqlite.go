package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/store/sqlite"
)

// SQLite creates or updates the tables of a store/sqlite in db. Everything
// happens in one transaction: either all migrations are applied or none.
// Processes may call it at the same time, and each migration runs once. It
// waits for the database's write lock as long as ctx lasts. If all migrations
// have run, it needs no lock.
func SQLite(ctx context.Context, db *sql.DB) error {
	d := dialect{
		name: "sqlite", goose: goose.DialectSQLite3, files: sqlite.Schema(),
		tableExists: `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`,
		lock:        lockSQLite, noInterrupt: true,
	}
	return d.migrate(ctx, db)
}

// lockSQLite begins a transaction that holds the database's write lock.
func lockSQLite(ctx context.Context, conn *sql.Conn) error {
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
