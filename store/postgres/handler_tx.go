package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// handlerTx is the transaction of run. It cannot be ended.
type handlerTx struct{ guardedTx }

// Commit is refused, because run's results decide the end.
func (*handlerTx) Commit(context.Context) error { return ErrEnded }

// Rollback is refused, too.
func (*handlerTx) Rollback(context.Context) error { return ErrEnded }

// savepoint is a nested transaction, which the handler may end.
type savepoint struct{ guardedTx }

// Commit keeps the changes since the savepoint.
func (s *savepoint) Commit(ctx context.Context) error {
	return s.t.call(ctx, staysInside, func() error { return s.Tx.Commit(ctx) })
}

// Rollback undoes the changes since the savepoint.
func (s *savepoint) Rollback(ctx context.Context) error {
	return s.t.call(ctx, staysInside, func() error { return s.Tx.Rollback(ctx) })
}

// guardedTx is a transaction, or a savepoint in it, that allows one call at a time
// and sees all errors.
type guardedTx struct {
	pgx.Tx

	t *transaction
}

// Begin makes a savepoint.
func (w guardedTx) Begin(ctx context.Context) (inner pgx.Tx, err error) {
	err = w.t.call(ctx, staysInside, func() error {
		w.t.save(ctx) // before the inner savepoint, whose end would undo it
		inner, err = w.Tx.Begin(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &savepoint{guardedTx{inner, w.t}}, nil
}

// Exec runs a statement.
func (w guardedTx) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = w.t.call(ctx, effectOf(sql, args), func() error {
		tag, err = w.Tx.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// Query runs a statement that gives rows.
func (w guardedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := w.t.enter(ctx, effectOf(sql, args)); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
	}
	rows, err := w.Tx.Query(ctx, sql, args...)
	w.t.reading = err == nil
	w.t.exit(err)
	return &guardedRows{Rows: rows, t: w.t, closed: err != nil}, err
}

// QueryRow runs a statement that gives one row.
func (w guardedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := w.Query(ctx, sql, args...) // the row has the error
	return guardedRow{rows}
}

// SendBatch runs several statements.
func (w guardedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := w.t.enter(ctx, effectOfBatch(b)); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results := w.Tx.SendBatch(ctx, b)
	w.t.reading = true
	w.t.exit(nil)
	return &guardedResults{BatchResults: results, t: w.t}
}

// CopyFrom writes many rows.
func (w guardedTx) CopyFrom(ctx context.Context, table pgx.Identifier, names []string, rows pgx.CopyFromSource) (n int64, err error) {
	err = w.t.call(ctx, staysInside, func() error {
		n, err = w.Tx.CopyFrom(ctx, table, names, rows)
		return err
	})
	return n, err
}

// Prepare prepares a statement.
func (w guardedTx) Prepare(ctx context.Context, name, sql string) (description *pgconn.StatementDescription, err error) {
	may := effectOf(sql, nil)
	if may != staysInside {
		may = mayEndAndWrite // its name may be any word
	}
	err = w.t.call(ctx, may, func() error {
		description, err = w.Tx.Prepare(ctx, name, sql)
		return err
	})
	return description, err
}

// LargeObjects returns the driver's large objects, which use the connection
// directly.
func (w guardedTx) LargeObjects() pgx.LargeObjects {
	_ = w.t.exposeConn()
	return w.Tx.LargeObjects()
}

// Conn returns the connection, and nil after the end of the transaction.
func (w guardedTx) Conn() *pgx.Conn { return w.t.rawConn(w.Tx) }
