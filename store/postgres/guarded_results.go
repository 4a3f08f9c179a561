package postgres

import (
	"cmp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// guardedRows are rows whose reading is guarded, and whose error is seen.
type guardedRows struct {
	pgx.Rows

	t      *transaction
	of     bool  // of a batch, which is still being read when they are not
	closed bool  // they are read to their end
	late   error // why they cannot be used any more
}

// enter begins to use the rows, unless that is too late.
func (r *guardedRows) enter() bool {
	if r.late == nil {
		r.late = r.t.resume()
	}
	return r.late == nil
}

// exit ends the use of the rows. If the rows have ended, the driver reports why.
func (r *guardedRows) exit(end bool) {
	err := r.Rows.Err()
	if !r.closed && (end || err != nil) {
		r.closed = true
		r.t.reading = r.of
	}
	r.t.exit(err)
}

// Next goes to the next row.
func (r *guardedRows) Next() bool {
	if r.closed || !r.enter() {
		return false
	}
	next := r.Rows.Next()
	r.exit(!next)
	return next
}

// Close ends the reading.
func (r *guardedRows) Close() {
	if !r.closed && r.enter() {
		r.Rows.Close()
		r.exit(true)
	}
}

// Err returns what ended the rows.
func (r *guardedRows) Err() error {
	if r.late != nil {
		return r.late
	}
	return r.Rows.Err()
}

// read reads from the row, unless that is too late.
func read[T any](r *guardedRows, do func() T) (zero T) {
	if !r.enter() {
		return zero
	}
	defer r.exit(false)
	return do()
}

// Scan reads the row.
func (r *guardedRows) Scan(dest ...any) error {
	err := read(r, func() error { return r.Rows.Scan(dest...) })
	return cmp.Or(r.late, err)
}

// Values reads the row.
func (r *guardedRows) Values() (values []any, err error) {
	err = read(r, func() (err error) {
		values, err = r.Rows.Values()
		return err
	})
	return values, cmp.Or(r.late, err)
}

// RawValues reads the row.
func (r *guardedRows) RawValues() [][]byte { return read(r, r.Rows.RawValues) }

// FieldDescriptions tells the columns.
func (r *guardedRows) FieldDescriptions() []pgconn.FieldDescription {
	return read(r, r.Rows.FieldDescriptions)
}

// Conn gives the connection, and nil when the transaction is over.
func (r *guardedRows) Conn() *pgx.Conn { return r.t.rawConn(r.t.tx) }

// guardedRow is the only row of a result.
type guardedRow struct{ rows pgx.Rows }

// Scan reads the row, and closes the result.
func (r guardedRow) Scan(dest ...any) error {
	_, err := pgx.CollectOneRow(r.rows, func(row pgx.CollectableRow) (any, error) { return nil, row.Scan(dest...) })
	return err
}

// guardedResults are the results of a batch whose reading is guarded.
type guardedResults struct {
	pgx.BatchResults

	t      *transaction
	closed bool
}

// Exec reads the next result.
func (r *guardedResults) Exec() (tag pgconn.CommandTag, err error) {
	err = r.t.read(func() error {
		tag, err = r.BatchResults.Exec()
		return err
	})
	return tag, err
}

// Query reads the next result, which has rows.
func (r *guardedResults) Query() (pgx.Rows, error) {
	if err := r.t.resume(); err != nil {
		return pgx.FailedBatchResults(&pgx.Batch{}, err).Query()
	}
	rows, err := r.BatchResults.Query()
	r.t.exit(err)
	return &guardedRows{Rows: rows, t: r.t, of: true, closed: err != nil}, err
}

// QueryRow reads the next result, which has one row.
func (r *guardedResults) QueryRow() pgx.Row {
	rows, _ := r.Query() // the row has the error
	return guardedRow{rows}
}

// Close ends the batch.
func (r *guardedResults) Close() error {
	if r.closed {
		return r.BatchResults.Close()
	}
	return r.t.read(func() error {
		r.closed, r.t.reading = true, false
		return r.BatchResults.Close()
	})
}
