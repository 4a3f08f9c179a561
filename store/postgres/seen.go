package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// seen is what was seen of a handler's use of its transaction.
type seen struct {
	broken          error // what aborted it, if the handler has not gone back to a savepoint
	aloneRolledBack bool  // it was ended by ROLLBACK, and by nothing else
	exposed         bool  // the handler has the connection itself
}

// before refuses what would not be in the transaction any more.
func (t *transaction) before() error {
	switch t.status() {
	case outside:
		return ErrEnded
	case inside:
		t.broken = nil
	}
	return nil
}

// after remembers the error that aborted the transaction: a handler that passes
// over it would see only what came of it later.
func (t *transaction) after(err error) {
	if err != nil && t.broken == nil && (t.status() == aborted || t.conn.Conn().IsClosed()) {
		t.broken = err
	}
}

// cause returns what aborted the transaction.
func (t *transaction) cause() error {
	if t.broken == nil {
		return errors.New("semel/postgres: the transaction is aborted")
	}
	return t.broken
}

// watchedRows are rows whose error is seen.
type watchedRows struct {
	pgx.Rows

	t *transaction
}

// Next goes to the next row.
func (r *watchedRows) Next() bool {
	next := r.Rows.Next()
	if !next {
		r.t.after(r.Err())
	}
	return next
}

// Close ends the reading.
func (r *watchedRows) Close() {
	r.Rows.Close()
	r.t.after(r.Err())
}

// watchedRow is a row whose error is seen.
type watchedRow struct {
	pgx.Row

	t *transaction
}

// Scan reads the row.
func (r watchedRow) Scan(dest ...any) error {
	err := r.Row.Scan(dest...)
	r.t.after(err)
	return err
}

// watchedResults are the results of a batch whose errors are seen.
type watchedResults struct {
	pgx.BatchResults

	t *transaction
}

// Exec reads the next result.
func (r watchedResults) Exec() (pgconn.CommandTag, error) {
	tag, err := r.BatchResults.Exec()
	r.t.after(err)
	return tag, err
}

// Query reads the next result, which has rows.
func (r watchedResults) Query() (pgx.Rows, error) {
	rows, err := r.BatchResults.Query()
	r.t.after(err)
	return &watchedRows{rows, r.t}, err
}

// QueryRow reads the next result, which has one row.
func (r watchedResults) QueryRow() pgx.Row {
	return watchedRow{r.BatchResults.QueryRow(), r.t}
}

// Close ends the batch.
func (r watchedResults) Close() error {
	err := r.BatchResults.Close()
	r.t.after(err)
	return err
}

// endedRows are those of a transaction that the handler has ended.
type endedRows struct{}

func (endedRows) Close()                                       {}
func (endedRows) Err() error                                   { return ErrEnded }
func (endedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (endedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (endedRows) Next() bool                                   { return false }
func (endedRows) Scan(...any) error                            { return ErrEnded }
func (endedRows) Values() ([]any, error)                       { return nil, ErrEnded }
func (endedRows) RawValues() [][]byte                          { return nil }
func (endedRows) Conn() *pgx.Conn                              { return nil }
func (endedRows) TypeMap() *pgtype.Map                         { return nil }
