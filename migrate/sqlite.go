package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/semelgo/semel/store/sqlite"
)

// versionTable keeps which migrations have run.
const versionTable = "semel_migrations"

// SQLite brings the tables of a store/sqlite in db up to date. All of it happens
// in one transaction: it is done wholly or not at all, and not a second time when
// several processes call it at once. It waits for the database's write lock as
// long as ctx lasts, but needs none when there is nothing to do.
func SQLite(ctx context.Context, db *sql.DB) error {
	done, err := upToDate(ctx, db)
	if err != nil {
		return fmt.Errorf("migrate sqlite: %w", err)
	}
	if done {
		return nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("migrate sqlite: take a connection: %w", err)
	}
	defer conn.Close()
	if err := within(ctx, conn, lock, func() error { return up(ctx, conn) }); err != nil {
		return fmt.Errorf("migrate sqlite: %w", err)
	}
	return nil
}

// provider reads the migrations; db is not used before one of them runs.
func provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectSQLite3, db, sqlite.Schema(),
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
}

// upToDate reads whether the newest migration has run.
func upToDate(ctx context.Context, db *sql.DB) (bool, error) {
	p, err := provider(db)
	if err != nil {
		return false, err
	}
	var there bool
	err = db.QueryRowContext(ctx, `SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?`,
		versionTable).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	var version sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT max(version_id) FROM `+versionTable).Scan(&version)
	return version.Int64 >= newest, err
}

// up runs the migrations on conn, within the transaction it is in.
func up(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(driverConn any) error {
		db := share(driverConn)
		defer db.Close()
		p, err := provider(db)
		if err != nil {
			return err
		}
		// Not under ctx: an interrupted statement would end the transaction.
		_, err = p.Up(context.WithoutCancel(ctx))
		return err
	})
}

func lock(ctx context.Context, conn *sql.Conn) error {
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
