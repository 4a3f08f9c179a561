package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handedTx is the transaction that run is given: it can do everything but end.
type handedTx struct{ watched }

// Commit refuses: what run returns decides the end.
func (*handedTx) Commit(context.Context) error { return ErrEnded }

// Rollback refuses likewise.
func (*handedTx) Rollback(context.Context) error { return ErrEnded }

// savepoint is a transaction within the transaction, and the handler's to end.
type savepoint struct{ watched }

// Commit keeps what was done since.
func (s *savepoint) Commit(ctx context.Context) error {
	return s.call(ctx, reachInside, func() error { return s.Tx.Commit(ctx) })
}

// Rollback undoes what was done since.
func (s *savepoint) Rollback(ctx context.Context) error {
	return s.call(ctx, reachInside, func() error { return s.Tx.Rollback(ctx) })
}

// watched is a transaction, or a savepoint within it, whose calls are guarded and
// whose errors are seen.
type watched struct {
	pgx.Tx

	t *transaction
}

// call makes a call that leaves no result open.
func (w watched) call(ctx context.Context, may reach, do func() error) error {
	if err := w.t.enter(ctx, may); err != nil {
		return err
	}
	var err error
	defer func() { w.t.exit(err) }() // also when a source of rows panics
	err = do()
	return err
}

// Begin makes a savepoint.
func (w watched) Begin(ctx context.Context) (inner pgx.Tx, err error) {
	err = w.call(ctx, reachInside, func() error {
		w.t.save(ctx) // outside of it, where its end does not reach
		inner, err = w.Tx.Begin(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &savepoint{watched{inner, w.t}}, nil
}

// Exec runs a statement.
func (w watched) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = w.call(ctx, reachOf(sql, args), func() error {
		tag, err = w.Tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// Query runs a statement that gives rows.
func (w watched) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := w.t.enter(ctx, reachOf(sql, args)); err != nil {
		return &noRows{err}, err
	}
	rows, err := w.Tx.Query(ctx, sql, args...)
	w.t.reading = err == nil
	w.t.exit(err)
	return &watchedRows{Rows: rows, t: w.t, closed: err != nil}, err
}

// QueryRow runs a statement that gives one row.
func (w watched) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := w.t.enter(ctx, reachOf(sql, args)); err != nil {
		return &noRows{err}
	}
	row := w.Tx.QueryRow(ctx, sql, args...)
	w.t.reading = true
	w.t.exit(nil)
	return &watchedRow{row: row, t: w.t}
}

// SendBatch runs several statements.
func (w watched) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := w.t.enter(ctx, reachOfBatch(b)); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results := w.Tx.SendBatch(ctx, b)
	w.t.reading = true
	w.t.exit(nil)
	return &watchedResults{BatchResults: results, t: w.t}
}

// CopyFrom writes many rows.
func (w watched) CopyFrom(ctx context.Context, table pgx.Identifier, names []string, rows pgx.CopyFromSource) (n int64, err error) {
	err = w.call(ctx, reachInside, func() error {
		n, err = w.Tx.CopyFrom(ctx, table, names, rows)
		return err
	})
	return n, err
}

// Prepare prepares a statement.
func (w watched) Prepare(ctx context.Context, name, sql string) (description *pgconn.StatementDescription, err error) {
	err = w.call(ctx, reachOfPrepared(sql), func() error {
		description, err = w.Tx.Prepare(ctx, name, sql)
		return err
	})
	return description, err
}

// LargeObjects gives what works on the connection itself.
func (w watched) LargeObjects() pgx.LargeObjects {
	_ = w.t.expose()
	return w.Tx.LargeObjects()
}

// Conn gives the connection, and nil when the transaction is over.
func (w watched) Conn() *pgx.Conn { return w.t.raw(w.Tx) }
