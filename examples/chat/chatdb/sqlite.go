package chatdb

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"strings"
	"sync"
)

//go:embed schema_sqlite.sql
var schemaSQLite string

// sqliteDB is a database that one transaction writes at a time.
type sqliteDB struct {
	sqliteQuerier

	db   *sql.DB
	turn chan struct{}
}

// SQLite returns the database db, whose transactions must be immediate ones.
func SQLite(db *sql.DB) DB {
	return &sqliteDB{sqliteQuerier{db}, db, make(chan struct{}, 1)}
}

// Begin waits for its turn first: there is one write lock, and to queue for it
// here costs no connection.
func (d *sqliteDB) Begin(ctx context.Context) (OwnTx, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	next := sync.OnceFunc(func() { <-d.turn })
	tx, err := d.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		next()
		return nil, err
	}
	return sqliteOwnTx{sqliteTx{sqliteQuerier{tx}, tx}, next}, nil
}

func (d *sqliteDB) Ping(ctx context.Context) error {
	var tables int
	return d.QueryRow(ctx, `select count(*) from sqlite_schema`).Scan(&tables)
}

func (d *sqliteDB) Close() error { return d.db.Close() }

// OnSQLite returns tx as a transaction of the chat's.
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

func (sqliteTx) dialect() dialect { return dialect{schema: schemaSQLite} }

type sqliteOwnTx struct {
	sqliteTx

	next func() // lets the next one begin
}

func (t sqliteOwnTx) Commit(context.Context) error {
	defer t.next()
	return t.tx.Commit()
}

func (t sqliteOwnTx) Rollback(context.Context) error {
	defer t.next()
	return t.tx.Rollback()
}

// sqliteQuerier is what *sql.DB and *sql.Tx have in common.
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
	return sqliteRows{rows}, nil
}

func (q sqliteQuerier) QueryRow(ctx context.Context, statement string, args ...any) Row {
	return foundRow{q.q.QueryRowContext(ctx, numbered(statement), args...)}
}

type sqliteRows struct{ *sql.Rows }

func (r sqliteRows) Close() { _ = r.Rows.Close() }

// numbered writes parameters as SQLite numbers them.
func numbered(statement string) string { return strings.ReplaceAll(statement, "$", "?") }

// foundRow turns the driver's word for no rows into ours.
type foundRow struct{ row Row }

func (r foundRow) Scan(dest ...any) error {
	err := r.row.Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
