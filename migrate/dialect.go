package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// versionTable records which migrations have run.
const versionTable = "semel_migrations"

// dialect has the differences between the databases.
type dialect struct {
	name        string
	goose       goose.Dialect
	files       fs.FS
	tableExists string // query that reports whether the table of its parameter exists
	// lock begins a transaction that excludes all other migrations.
	lock func(context.Context, *sql.Conn) error
	// noInterrupt: an interrupted statement would end the transaction.
	noInterrupt bool
}

// migrate runs the missing migrations on db.
func (d *dialect) migrate(ctx context.Context, db *sql.DB) error {
	done, err := d.upToDate(ctx, db)
	if err == nil && !done {
		err = d.onOneConnection(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("migrate %s: %w", d.name, err)
	}
	return nil
}

func (d *dialect) onOneConnection(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	defer conn.Close()
	return inTransaction(ctx, conn, d.lock, func() error { return d.up(ctx, conn) })
}

// provider reads the migrations. It does not use db before a migration runs.
func (d *dialect) provider(db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(d.goose, db, d.files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true))
}

// upToDate reports whether the newest migration has run.
func (d *dialect) upToDate(ctx context.Context, db *sql.DB) (bool, error) {
	p, err := d.provider(db)
	if err != nil {
		return false, err
	}
	var there bool
	err = db.QueryRowContext(ctx, d.tableExists, versionTable).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	var version sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT max(version_id) FROM `+versionTable).Scan(&version)
	return version.Int64 >= newest, err
}

// up runs the missing migrations on conn, in conn's current transaction.
func (d *dialect) up(ctx context.Context, conn *sql.Conn) error {
	return conn.Raw(func(driverConn any) error {
		db := shareConn(driverConn)
		defer db.Close()
		p, err := d.provider(db)
		if err != nil {
			return err
		}
		if d.noInterrupt {
			ctx = context.WithoutCancel(ctx)
		}
		_, err = p.Up(ctx)
		return err
	})
}
