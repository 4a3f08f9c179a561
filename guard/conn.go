package guard

import (
	"context"
	"database/sql"

	"github.com/semelgo/semel"
)

// Conn runs statements on a database or in a transaction. [SQL] and [Pgx] return one.
type Conn interface {
	exec(ctx context.Context, query string, args []any) (rows int64, err error)
	row(ctx context.Context, query string, args []any) Row
	// begin begins a transaction, or a savepoint within one.
	begin(ctx context.Context) (txConn, error)
}

// Row is the result of a query of one row, such as *sql.Row and pgx.Row.
type Row interface {
	Scan(dest ...any) error
}

// txConn is a transaction or a savepoint.
type txConn interface {
	Conn
	commit(ctx context.Context) error
	rollback(ctx context.Context) error
}

// SQLConn is a database or a transaction of package database/sql: *sql.DB, *sql.Tx,
// *sql.Conn, or a type that extends one of them.
type SQLConn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// SQL returns the Conn of a *sql.Tx, a *sql.DB or a *sql.Conn.
func SQL(c SQLConn) Conn { return sqlConn{c} }

type sqlConn struct{ c SQLConn }

func (s sqlConn) exec(ctx context.Context, query string, args []any) (int64, error) {
	result, err := s.c.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s sqlConn) row(ctx context.Context, query string, args []any) Row {
	return s.c.QueryRowContext(ctx, query, args...)
}

// begin makes a savepoint only in what is known to be a transaction: on a pool, the
// savepoint and the next statement could use different connections.
func (s sqlConn) begin(ctx context.Context) (txConn, error) {
	if _, isTx := s.c.(interface{ Rollback() error }); isTx {
		_, err := s.exec(ctx, "SAVEPOINT semel_guard", nil)
		return sqlSavepoint{s}, err
	}
	db, ok := s.c.(interface {
		BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
	})
	if !ok {
		return nil, &semel.FieldError{Field: "SQLConn", Reason: "is neither a transaction nor a database"}
	}
	tx, err := db.BeginTx(ctx, nil)
	return sqlTx{sqlConn{tx}, tx}, err
}

type sqlTx struct {
	sqlConn

	tx *sql.Tx
}

func (t sqlTx) commit(context.Context) error   { return t.tx.Commit() }
func (t sqlTx) rollback(context.Context) error { return t.tx.Rollback() }

type sqlSavepoint struct{ sqlConn }

func (s sqlSavepoint) commit(ctx context.Context) error {
	_, err := s.exec(ctx, "RELEASE SAVEPOINT semel_guard", nil)
	return err
}

func (s sqlSavepoint) rollback(ctx context.Context) error {
	if _, err := s.exec(ctx, "ROLLBACK TO SAVEPOINT semel_guard", nil); err != nil {
		return err
	}
	return s.commit(ctx)
}

// RowCount is the result of a statement of pgx, pgconn.CommandTag.
type RowCount interface {
	RowsAffected() int64
}

// PgxConn has the methods of pgx that a pgxpool.Pool, a pgx.Conn and a pgx.Tx share.
type PgxConn[Tx, Tag, R any] interface {
	Begin(ctx context.Context) (Tx, error)
	Exec(ctx context.Context, query string, args ...any) (Tag, error)
	QueryRow(ctx context.Context, query string, args ...any) R
}

// PgxTx has the methods of a pgx.Tx.
type PgxTx[Tag, R any] interface {
	Exec(ctx context.Context, query string, args ...any) (Tag, error)
	QueryRow(ctx context.Context, query string, args ...any) R
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// Pgx returns the Conn of a pgx.Tx, a *pgxpool.Pool or a *pgx.Conn. Its type parameters
// are inferred; they keep pgx out of programs that do not use it.
func Pgx[Tx PgxTx[Tag, R], Tag RowCount, R Row](c PgxConn[Tx, Tag, R]) Conn {
	return pgxConn[Tx, Tag, R]{c}
}

type pgxConn[Tx PgxTx[Tag, R], Tag RowCount, R Row] struct{ c PgxConn[Tx, Tag, R] }

func (p pgxConn[Tx, Tag, R]) exec(ctx context.Context, query string, args []any) (int64, error) {
	tag, err := p.c.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), nil
}

func (p pgxConn[Tx, Tag, R]) row(ctx context.Context, query string, args []any) Row {
	return p.c.QueryRow(ctx, query, args...)
}

func (p pgxConn[Tx, Tag, R]) begin(ctx context.Context) (txConn, error) {
	tx, err := p.c.Begin(ctx)
	return pgxTx[Tx, Tag, R]{tx}, err
}

type pgxTx[Tx PgxTx[Tag, R], Tag RowCount, R Row] struct{ tx Tx }

func (p pgxTx[Tx, Tag, R]) exec(ctx context.Context, query string, args []any) (int64, error) {
	tag, err := p.tx.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), nil
}

func (p pgxTx[Tx, Tag, R]) row(ctx context.Context, query string, args []any) Row {
	return p.tx.QueryRow(ctx, query, args...)
}

func (p pgxTx[Tx, Tag, R]) begin(context.Context) (txConn, error) { return p, nil }
func (p pgxTx[Tx, Tag, R]) commit(ctx context.Context) error      { return p.tx.Commit(ctx) }
func (p pgxTx[Tx, Tag, R]) rollback(ctx context.Context) error    { return p.tx.Rollback(ctx) }
