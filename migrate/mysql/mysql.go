// Package mysql creates and updates the tables of a store/mysql.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "github.com/go-sql-driver/mysql"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/sqlname"
	"github.com/semelgo/semel/migrate"
	"github.com/semelgo/semel/store/mysql"
)

// Options name the tables. They must be those of the store.
type Options struct {
	// Prefix begins the names of tables and views. Empty means semel_. With another
	// prefix, semel_records is PREFIXrecords, for instance.
	Prefix string
}

// Up creates or updates the tables in db's database. The server commits each statement
// that creates a table by itself, so an interrupted Up continues when it is called
// again. Processes that call Up at the same time wait for each other, as long as ctx
// lasts, and each migration runs once. On a Galera cluster they wait for each other at
// all nodes; there, if a process ends within Up, the next one waits for 15 seconds. If
// all migrations have run, Up only reads.
func Up(ctx context.Context, db *sql.DB, o Options) error {
	prefix, err := sqlname.Prefix("Options.Prefix", o.Prefix)
	if err != nil {
		return fmt.Errorf("migrate mysql: %w", err)
	}
	table := prefix + "migrations"
	d := migrate.Database{
		Name: "mysql", Files: mysql.Schema(), Prefix: prefix, Table: table,
		Exists: `SELECT count(*) > 0 FROM information_schema.tables WHERE table_schema = database() AND table_name = '` + table + `'`,
		Create: `CREATE TABLE IF NOT EXISTS ` + table + ` (
  id         BIGINT    NOT NULL PRIMARY KEY AUTO_INCREMENT,
  version_id BIGINT    NOT NULL,
  is_applied BOOLEAN   NOT NULL,
  tstamp     TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
) ENGINE=InnoDB`,
		Begin: begin, Commit: `DO RELEASE_LOCK(` + lock + `)`, Rollback: `DO RELEASE_LOCK(` + lock + `)`,
	}
	onGalera, err := isGalera(ctx, db)
	if err != nil {
		return fmt.Errorf("migrate mysql: %w", err)
	}
	if onGalera {
		c := newClaim(prefix)
		d.Begin, d.Hold, d.Commit, d.Rollback = c.take, c.renew, c.release(), c.release()
	}
	for {
		err := migrate.Up(ctx, db, d)
		if !isConflict(err) && !errors.Is(err, errClaimLost) {
			return err
		}
		if !pause(ctx) {
			return err
		}
	}
}

// isConflict reports whether a node of a Galera cluster has rolled a statement back,
// because another node migrates at the same time.
func isConflict(err error) bool {
	const deadlock = 1213
	refused, ok := errtype.Find[*driver.MySQLError](err)
	return ok && refused.Number == deadlock
}

// lock is the name of the lock of a migration. A lock's name has at most 64 characters
// and belongs to the server, so the database is part of it.
const lock = `concat('semel migration ', md5(database()))`

// begin takes the lock, which ends with its connection.
func begin(ctx context.Context, conn *sql.Conn) error {
	for {
		var got sql.NullBool
		err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(`+lock+`, 1)`).Scan(&got)
		switch {
		case err != nil:
			return err
		case got.Bool:
			return nil
		}
	}
}
