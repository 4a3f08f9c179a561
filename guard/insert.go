package guard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semelgo/semel"
)

// Insertion is a row with a unique index on the business key. R is the type of the row.
type Insertion[R any] struct {
	// Insert inserts the row. It may have the clause ON CONFLICT DO NOTHING, or IGNORE
	// on MySQL; neither is needed. It must not update an existing row.
	Insert Statement
	// Select reads the row by its business key.
	Select Statement
	// Scan reads the row from the result of Select.
	Scan func(Row) (R, error)
}

// Insert inserts a row, or returns the existing one: the mode "business key with
// unique index". Of any number of concurrent callers, one inserts the row, and all
// receive it as Select reads it. replayed means that the row was there.
//
// Insert recognizes the violation of a unique index by the errors of the drivers for
// PostgreSQL, MySQL, MariaDB and SQLite. If there is a violation and Select finds no
// row, the driver's error is returned: the violated index is another one, or the transaction
// reads an old snapshot. In a transaction at the isolation level repeatable read, which is the
// default of MySQL and MariaDB, Select must therefore lock the row, by FOR UPDATE for instance:
// such a read sees what is committed.
//
// In a transaction, the statement runs within a savepoint, because PostgreSQL aborts a
// transaction after a violation. On a database, Insert begins a transaction of its
// own; after an error of its COMMIT, call Insert again.
//
// The row shows that the key was used, but not for which request: compare the row with
// the request. The row is not the answer of the first call either, because it may have
// changed since. Use semel.DoTx where retries must receive the same answer.
func Insert[R any](ctx context.Context, c Conn, n Insertion[R]) (row R, replayed bool, err error) {
	if n.Scan == nil {
		return row, false, &semel.FieldError{Field: "Scan", Reason: "is missing"}
	}
	err = changeOne(ctx, c, n.Insert, func(c Conn, rows int64) error {
		replayed = rows == 0
		row, err = n.Scan(c.row(ctx, n.Select.text, n.Select.args))
		return err
	})
	if !isUnique(err) {
		if err != nil {
			err = fmt.Errorf("semel/guard: insert: %w", err)
		}
		return row, replayed && err == nil, err
	}
	row, read := n.Scan(c.row(ctx, n.Select.text, n.Select.args))
	switch {
	case errors.Is(read, sql.ErrNoRows):
		return row, false, fmt.Errorf("semel/guard: insert: %w; Select finds no row: the violated index is another one, or the transaction "+
			"reads an old snapshot", err)
	case read != nil:
		return row, false, fmt.Errorf("semel/guard: select: %w", read)
	}
	return row, true, nil
}
