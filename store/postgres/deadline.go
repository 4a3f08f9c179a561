package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// sendWithin sends b, and waits for the replies at most for d.
func sendWithin(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, d time.Duration) error {
	ctx = context.WithoutCancel(ctx)
	return within(conn, d, func() error { return conn.SendBatch(ctx, b).Close() })
}

// within makes a round trip of at most d. It uses the connection's own deadline,
// because a context's costs a timer and a goroutine for each round trip. A
// connection that misses the deadline is closed, as pgx would close it.
func within(conn *pgx.Conn, d time.Duration, trip func() error) error {
	wire := conn.PgConn().Conn()
	if err := wire.SetDeadline(time.Now().Add(d)); err != nil { //nolint:forbidigo // no instant of the protocol's
		return trip() // the connection is lost; trip returns the error
	}
	defer func() { // also when a callback panics
		if !conn.IsClosed() { // a closed connection has a deadline of its own
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
