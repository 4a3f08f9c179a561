package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
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

// Scan reads the row.
func (r *guardedRows) Scan(dest ...any) error {
	if !r.enter() {
		return r.late
	}
	defer r.exit(false)
	return r.Rows.Scan(dest...)
}

// Values reads the row.
func (r *guardedRows) Values() ([]any, error) {
	if !r.enter() {
		return nil, r.late
	}
	defer r.exit(false)
	return r.Rows.Values()
}

// RawValues reads the row.
func (r *guardedRows) RawValues() [][]byte {
	if !r.enter() {
		return nil
	}
	defer r.exit(false)
	return r.Rows.RawValues()
}

// FieldDescriptions tells the columns.
func (r *guardedRows) FieldDescriptions() []pgconn.FieldDescription {
	if !r.enter() {
		return nil
	}
	defer r.exit(false)
	return r.Rows.FieldDescriptions()
}

// Conn gives the connection, and nil when the transaction is over.
func (r *guardedRows) Conn() *pgx.Conn { return r.t.rawConn(r.t.tx) }

// guardedRow is a row whose reading is guarded.
type guardedRow struct {
	row  pgx.Row
	t    *transaction
	of   bool // of a batch
	read bool
}

// Scan reads the row.
func (r *guardedRow) Scan(dest ...any) error {
	if err := r.t.resume(); err != nil {
		return err
	}
	err := r.row.Scan(dest...)
	if !r.read {
		r.read, r.t.reading = true, r.of
	}
	r.t.exit(err)
	return err
}

// guardedResults are the results of a batch whose reading is guarded.
type guardedResults struct {
	pgx.BatchResults

	t      *transaction
	closed bool
}

// Exec reads the next result.
func (r *guardedResults) Exec() (pgconn.CommandTag, error) {
	if err := r.t.resume(); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := r.BatchResults.Exec()
	r.t.exit(err)
	return tag, err
}

// Query reads the next result, which has rows.
func (r *guardedResults) Query() (pgx.Rows, error) {
	if err := r.t.resume(); err != nil {
		return &noRows{err}, err
	}
	rows, err := r.BatchResults.Query()
	r.t.exit(err)
	return &guardedRows{Rows: rows, t: r.t, of: true, closed: err != nil}, err
}

// QueryRow reads the next result, which has one row.
func (r *guardedResults) QueryRow() pgx.Row {
	if err := r.t.resume(); err != nil {
		return &noRows{err}
	}
	row := r.BatchResults.QueryRow()
	r.t.exit(nil)
	return &guardedRow{row: row, t: r.t, of: true}
}

// Close ends the batch.
func (r *guardedResults) Close() error {
	if r.closed {
		return r.BatchResults.Close()
	}
	if err := r.t.resume(); err != nil {
		return err
	}
	err := r.BatchResults.Close()
	r.closed, r.t.reading = true, false
	r.t.exit(err)
	return err
}

// noRows are the rows of a call that was refused.
type noRows struct{ err error }

func (*noRows) Close()                                       {}
func (r *noRows) Err() error                                 { return r.err }
func (*noRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (*noRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (*noRows) Next() bool                                   { return false }
func (r *noRows) Scan(...any) error                          { return r.err }
func (r *noRows) Values() ([]any, error)                     { return nil, r.err }
func (*noRows) RawValues() [][]byte                          { return nil }
func (*noRows) Conn() *pgx.Conn                              { return nil }
func (*noRows) TypeMap() *pgtype.Map                         { return nil }
