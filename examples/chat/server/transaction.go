package server

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/examples/chat/chatdb"
)

// transaction returns a function that runs another one in a transaction of db.
// Every error except errCommit proves that nothing was committed.
func transaction(db chatdb.DB) transactFunc {
	return func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error {
		tx, err := db.Begin(ctx)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		// If the caller hangs up, the commit must still have a clear outcome.
		lasting := context.WithoutCancel(ctx)
		defer func() { _ = tx.Rollback(lasting) }() // does nothing after the commit
		if err := fn(ctx, tx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := tx.Commit(lasting); err != nil {
			return fmt.Errorf("%w: %w", errCommit, err)
		}
		return nil
	}
}
