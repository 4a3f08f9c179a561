package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handedTx is the transaction that run is given: it can do everything but end.
type handedTx struct{ watched }

// Commit refuses: what run returns decides the end.
func (*handedTx) Commit(context.Context) error { return ErrEnded }

// Rollback refuses likewise.
func (*handedTx) Rollback(context.Context) error { return ErrEnded }

// watched is a transaction, or a savepoint within it, whose errors are seen.
type watched struct {
	pgx.Tx

	t *transaction
}

// Begin makes a savepoint, which is the handler's to end.
func (w watched) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := w.t.before(); err != nil {
		return nil, err
	}
	inner, err := w.Tx.Begin(ctx)
	w.t.after(err)
	if err != nil {
		return nil, err
	}
	return &watched{inner, w.t}, nil
}

// Exec runs a statement.
func (w watched) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := w.t.before(); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := w.Tx.Exec(ctx, sql, args...)
	w.t.after(err)
	if w.t.status() == outside {
		w.t.aloneRolledBack = strings.EqualFold(strings.Trim(sql, " \t\r\n;"), "rollback")
	}
	return tag, err
}

// Query runs a statement that gives rows.
func (w watched) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := w.t.before(); err != nil {
		return endedRows{}, err
	}
	rows, err := w.Tx.Query(ctx, sql, args...)
	w.t.after(err)
	return &watchedRows{rows, w.t}, err
}

// QueryRow runs a statement that gives one row.
func (w watched) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := w.t.before(); err != nil {
		return endedRows{}
	}
	return watchedRow{w.Tx.QueryRow(ctx, sql, args...), w.t}
}

// SendBatch runs several statements.
func (w watched) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := w.t.before(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return watchedResults{w.Tx.SendBatch(ctx, b), w.t}
}

// CopyFrom writes many rows.
func (w watched) CopyFrom(ctx context.Context, table pgx.Identifier, names []string, rows pgx.CopyFromSource) (int64, error) {
	if err := w.t.before(); err != nil {
		return 0, err
	}
	n, err := w.Tx.CopyFrom(ctx, table, names, rows)
	w.t.after(err)
	return n, err
}

// Prepare prepares a statement.
func (w watched) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := w.t.before(); err != nil {
		return nil, err
	}
	description, err := w.Tx.Prepare(ctx, name, sql)
	w.t.after(err)
	return description, err
}

// Conn gives the connection. What is done by it is not seen.
func (w watched) Conn() *pgx.Conn {
	w.t.exposed = true
	return w.Tx.Conn()
}
