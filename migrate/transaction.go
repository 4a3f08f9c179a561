package migrate

import (
	"context"
	"database/sql"
	"fmt"
)

// inTransaction runs fn in a transaction of conn that lock begins. lock takes a
// lock that excludes other migrations and that a crash releases. The
// transaction commits if fn returns nil, and is rolled back otherwise.
func inTransaction(ctx context.Context, conn *sql.Conn, lock func(context.Context, *sql.Conn) error, fn func() error) error {
	ended := false
	defer func() {
		if !ended {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`) // the caller gets the original error
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
