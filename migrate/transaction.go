package migrate

import (
	"context"
	"database/sql"
	"fmt"
)

// inTransaction runs fn while conn is in a transaction that lock has begun, with a lock
// that nobody else has meanwhile and that a crash gives back. What fn did is
// committed if it did not fail.
func inTransaction(ctx context.Context, conn *sql.Conn, lock func(context.Context, *sql.Conn) error, fn func() error) error {
	ended := false
	defer func() {
		if !ended {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) // what failed is told by its own error
		}
	}()
	if err := lock(ctx, conn); err != nil {
		return fmt.Errorf("take the lock: %w", err)
	}
	if err := fn(); err != nil {
		return err
	}
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), `COMMIT`); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	ended = true
	return nil
}
