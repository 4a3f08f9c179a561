package migrate

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
)

// Database has what differs between databases. Its SQL contains the names that the
// user chose.
type Database struct {
	// Name begins the texts of errors.
	Name string
	// Files are the migrations. The name of each begins with its number and ends in
	// .sql; their order by name is their order by number. A statement ends with a
	// semicolon at the end of a line.
	Files fs.FS
	// Prefix begins the names of tables, indexes and views instead of semel_.
	Prefix string
	// Table is the table that records which migrations have run.
	Table string
	// Exists is a query that reports whether Table exists.
	Exists string
	// Create creates Table with the columns version_id and is_applied, if it is
	// missing.
	Create string

	// Begin takes a lock that excludes all other migrations and that a crash of the
	// process releases. It waits for the lock as long as ctx lasts. If the database
	// can create tables in a transaction, Begin also begins the transaction in which
	// all migrations run. Otherwise each migration must be idempotent, because it runs
	// again if the process stops before the migration is recorded.
	Begin func(ctx context.Context, conn *sql.Conn) error
	// Hold, if it is not nil, is called before each statement of a migration, and before
	// the migration is recorded. It renews a lock that would expire otherwise, and fails
	// if another process has the lock now.
	Hold func(ctx context.Context, conn *sql.Conn) error
	// Commit is the statement after the last migration. Rollback is the statement
	// after an error, also if the error is that of Begin. They end the transaction, or
	// release the lock if there is no transaction.
	Commit, Rollback string
}

// Up runs the migrations that are missing in db, on one of its connections. If none
// is missing, it only reads and needs no lock.
func Up(ctx context.Context, db *sql.DB, d Database) error {
	if err := d.up(ctx, db); err != nil {
		return fmt.Errorf("migrate %s: %w", d.Name, err)
	}
	return nil
}

func (d *Database) up(ctx context.Context, db *sql.DB) error {
	all, err := readFiles(d.Files, d.Prefix)
	if err != nil {
		return err
	}
	last, err := d.lastVersion(ctx, db)
	if err != nil || len(after(all, last)) == 0 {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("take a connection: %w", err)
	}
	defer conn.Close()
	if err := d.locked(ctx, conn, all); err != nil {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), d.Rollback) // the caller gets the original error
		return err
	}
	return nil
}

// locked runs the missing migrations while it holds the lock.
func (d *Database) locked(ctx context.Context, conn *sql.Conn, all []migration) error {
	if err := d.Begin(ctx, conn); err != nil {
		return fmt.Errorf("take the lock: %w", err)
	}
	if _, err := conn.ExecContext(ctx, d.Create); err != nil {
		return fmt.Errorf("create the table %s: %w", d.Table, err)
	}
	last, err := d.lastVersion(ctx, conn) // other processes may have migrated before
	if err != nil {
		return err
	}
	for _, m := range after(all, last) {
		if err := d.run(ctx, conn, m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), d.Commit); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// run runs a migration and records it.
func (d *Database) run(ctx context.Context, conn *sql.Conn, m migration) error {
	for i, statement := range m.statements {
		if err := d.exec(ctx, conn, statement); err != nil {
			return fmt.Errorf("statement %d: %w", i+1, err)
		}
	}
	record := fmt.Sprintf(`INSERT INTO %s (version_id, is_applied) VALUES (%d, true)`, d.Table, m.version)
	if err := d.exec(ctx, conn, record); err != nil {
		return fmt.Errorf("record it: %w", err)
	}
	return nil
}

// exec runs a statement while it holds the lock.
func (d *Database) exec(ctx context.Context, conn *sql.Conn, statement string) error {
	if d.Hold != nil {
		if err := d.Hold(ctx, conn); err != nil {
			return fmt.Errorf("keep the lock: %w", err)
		}
	}
	_, err := conn.ExecContext(ctx, statement)
	return err
}

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// lastVersion returns the number of the last migration that has run, or 0.
func (d *Database) lastVersion(ctx context.Context, in querier) (int64, error) {
	var exists bool
	err := in.QueryRowContext(ctx, d.Exists).Scan(&exists)
	if err != nil {
		return 0, fmt.Errorf("look for the table %s: %w", d.Table, err)
	}
	if !exists {
		return 0, nil
	}
	var version sql.NullInt64
	if err := in.QueryRowContext(ctx, `SELECT max(version_id) FROM `+d.Table).Scan(&version); err != nil {
		return 0, fmt.Errorf("read the table %s: %w", d.Table, err)
	}
	return version.Int64, nil
}
