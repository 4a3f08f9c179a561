package guard

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Statement is SQL of the caller, in the placeholders of the caller's driver. [Query]
// returns one.
type Statement struct {
	text string
	args []any
}

// Query returns a statement with its arguments.
func Query(text string, args ...any) Statement { return Statement{text: text, args: args} }

// ErrRows means that a statement that must change one row changed several. Its changes
// were undone.
var ErrRows = errors.New("semel/guard: the statement changed more than one row, and was undone")

// timeout limits a COMMIT, a rollback and a seal, which do not end with their context.
const timeout = 5 * time.Second

// rollback ends a transaction, or a savepoint. Without a COMMIT nothing is committed, so
// its error does not matter.
func rollback(ctx context.Context, tx txConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	_ = tx.rollback(ctx)
}

// changeOne runs a statement and then next, in a transaction or a savepoint of its own.
// Several changed rows are an error, and an error undoes the statement.
func changeOne(ctx context.Context, c Conn, s Statement, next func(c Conn, rows int64) error) (err error) {
	tx, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	undone := false
	defer func() {
		if !undone { // also on a panic in next
			rollback(ctx, tx)
		}
	}()
	rows, err := tx.exec(ctx, s.text, s.args)
	if err == nil && rows > 1 {
		err = fmt.Errorf("%w: %d rows", ErrRows, rows)
	}
	if err == nil {
		err = next(tx, rows)
	}
	if err != nil {
		return err
	}
	undone = true
	return tx.commit(ctx)
}
