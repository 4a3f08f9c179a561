package chatdb

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"strings"
	"sync"

	"github.com/semelgo/semel/store/sqlite"
)

//go:embed schema_sqlite.sql
var schemaSQLite string

// sqliteDB runs one transaction at a time.
type sqliteDB struct {
	sqliteQuerier

	db   *sql.DB
	turn chan struct{}
}

// SQLite wraps db, which must be opened with _txlock=immediate and a busy_timeout,
// as sqlite.Open does.
func SQLite(db *sql.DB) DB {
	return &sqliteDB{sqliteQuerier{db}, db, make(chan struct{}, 1)}
}

// Begin waits for the transactions before it, which use no connection meanwhile, and
// then for the write lock of other connections and processes, until ctx ends.
func (d *sqliteDB) Begin(ctx context.Context) (OwnTx, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	next := sync.OnceFunc(func() { <-d.turn })
	for {
		tx, err := d.db.BeginTx(context.WithoutCancel(ctx), nil)
		switch {
		case err == nil:
			return sqliteLocalTx{sqliteTx{sqliteQuerier{tx}, tx}, next}, nil
		case ctx.Err() != nil:
			err = errors.Join(context.Cause(ctx), err)
		case sqlite.IsBusy(err):
			continue // it has waited for the database's busy_timeout
		}
		next()
		return nil, err
	}
}

func (d *sqliteDB) Ping(ctx context.Context) error {
	var tables int
	return d.QueryRow(ctx, `select count(*) from sqlite_schema`).Scan(&tables)
}

func (d *sqliteDB) Close() error { return d.db.Close() }

// OnSQLite wraps a transaction of the driver.
func OnSQLite(tx *sql.Tx) Tx { return sqliteTx{sqliteQuerier{tx}, tx} }

type sqliteTx struct {
	sqliteQuerier

	tx *sql.Tx
}

func (t sqliteTx) Exec(ctx context.Context, statement string, args ...any) error {
	_, err := t.tx.ExecContext(ctx, numbered(statement), args...)
	return err
}

func (t sqliteTx) beneath() any { return t.tx }

func (sqliteTx) dialect() dialect { return standard(schemaSQLite) }

type sqliteLocalTx struct {
	sqliteTx

	next func() // lets the next transaction begin
}

func (t sqliteLocalTx) Commit(context.Context) error {
	defer t.next()
	return t.tx.Commit()
}

func (t sqliteLocalTx) Rollback(context.Context) error {
	defer t.next()
	return t.tx.Rollback()
}

// sqliteQuerier implements Querier for *sql.DB and *sql.Tx.
type sqliteQuerier struct {
	q interface {
		QueryContext(ctx context.Context, statement string, args ...any) (*sql.Rows, error)
		QueryRowContext(ctx context.Context, statement string, args ...any) *sql.Row
	}
}

func (q sqliteQuerier) Query(ctx context.Context, statement string, args ...any) (Rows, error) {
	rows, err := q.q.QueryContext(ctx, numbered(statement), args...)
	if err != nil {
		return nil, err
	}
	return sqlRows{rows}, nil
}

func (q sqliteQuerier) QueryRow(ctx context.Context, statement string, args ...any) Row {
	return existingRow{q.q.QueryRowContext(ctx, numbered(statement), args...)}
}

type sqlRows struct{ *sql.Rows }

func (r sqlRows) Close() { _ = r.Rows.Close() }

// numbered replaces $1, $2 … by SQLite's ?1, ?2 ….
func numbered(statement string) string { return strings.ReplaceAll(statement, "$", "?") }

// existingRow replaces sql.ErrNoRows by ErrNotFound.
type existingRow struct{ row Row }

func (r existingRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
