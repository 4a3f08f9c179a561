package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// sendWithin sends b, and waits no longer than d for the answers. The connection's
// own deadline takes less than a context's, which costs a timer and a watcher for
// each trip; a connection that missed it is closed, as it would be by pgx.
func sendWithin(ctx context.Context, conn *pgx.Conn, b *pgx.Batch, d time.Duration) error {
	wire := conn.PgConn().Conn()
	if err := wire.SetDeadline(time.Now().Add(d)); err != nil { //nolint:forbidigo // no instant of the protocol's
		return conn.SendBatch(context.WithoutCancel(ctx), b).Close() // the connection is lost, which will be told
	}
	defer func() { // also when a callback panics
		if !conn.IsClosed() { // otherwise its end has a deadline of its own
			_ = wire.SetDeadline(time.Time{})
		}
	}()
	err := conn.SendBatch(context.WithoutCancel(ctx), b).Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = wire.Close()
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return err
}
