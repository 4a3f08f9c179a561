package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// sendWithin sends b, and waits no longer than d for the answers.
func sendWithin(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, d time.Duration) error {
	ctx = context.WithoutCancel(ctx)
	return within(conn, d, func() error { return conn.SendBatch(ctx, b).Close() })
}

// within makes a trip that takes no longer than d. The connection's own deadline
// takes less than a context's, which costs a timer and a watcher for each trip; a
// connection that missed it is closed, as it would be by pgx.
func within(conn *pgx.Conn, d time.Duration, trip func() error) error {
	wire := conn.PgConn().Conn()
	if err := wire.SetDeadline(time.Now().Add(d)); err != nil { //nolint:forbidigo // no instant of the protocol's
		return trip() // the connection is lost, which will be told
	}
	defer func() { // also when a callback panics
		if !conn.IsClosed() { // otherwise its end has a deadline of its own
			_ = wire.SetDeadline(time.Time{})
		}
	}()
	err := trip()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = wire.Close()
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
