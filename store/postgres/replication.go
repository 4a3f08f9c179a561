package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// With synchronous replication a COMMIT waits for a standby, and its row becomes visible
// only after that. If the wait is cancelled, the row becomes visible without a standby
// that has it, and a failover would take it back. So a read that shows a final state, or
// finds a change applied, writes to the log in its own transaction, whose commit waits
// for a standby that has everything the read has seen.

// emit writes an empty message to the log, for a transaction that changes no row.
const emit = `pg_logical_emit_message(true, 'semel', '')`

// sqlConfirm makes the commit of a transaction wait for a standby.
const sqlConfirm = `SELECT ` + emit

// errNotReplicated means that the server committed without waiting for a standby until
// the end, because an operator or a driver cancelled the wait.
var errNotReplicated = errors.New("semel/postgres: the wait for synchronous replication was cancelled")

// WatchReplication lets the connections of config report commits whose wait for a
// synchronous standby was cancelled, by pg_cancel_backend for example. The server
// confirms such a commit, with a warning that pgx passes to OnNotice only. Call it with
// the ConnConfig of a pgxpool.Config before making the pool; OnNotice and AfterConnect
// that are set already are called too. Without it a store over the pool does not survive
// a failover: see [Store.Capabilities].
func WatchReplication(config *pgx.ConnConfig) {
	connected, notice := config.AfterConnect, config.OnNotice
	config.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[waitKey] = &replicationWait{}
		if connected == nil {
			return nil
		}
		return connected(ctx, conn)
	}
	config.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if w, ok := conn.CustomData()[waitKey].(*replicationWait); ok && isCancelledWait(n) {
			w.cancelled = n
		}
		if notice != nil {
			notice(conn, n)
		}
	}
}

// waitKey is the key of a connection's replicationWait in its custom data.
const waitKey = "semel.replication"

// replicationWait is what the server has reported on one connection.
type replicationWait struct {
	cancelled *pgconn.Notice // since the last look; nil: none
}

// isCancelledWait recognizes the warning by the server's function, because its text
// depends on lc_messages.
func isCancelledWait(n *pgconn.Notice) bool {
	return n.Routine == "SyncRepWaitForLSN" && n.SeverityUnlocalized == "WARNING"
}

// isWatched reports whether WatchReplication was called for the connection.
func isWatched(conn *pgx.Conn) bool {
	_, ok := conn.PgConn().CustomData()[waitKey].(*replicationWait)
	return ok
}

// cancelledWait returns the error of a commit of the connection whose wait for a standby
// was cancelled since the last call.
func cancelledWait(conn *pgx.Conn) error {
	w, ok := conn.PgConn().CustomData()[waitKey].(*replicationWait)
	if !ok || w.cancelled == nil {
		return nil
	}
	n := w.cancelled
	w.cancelled = nil
	return fmt.Errorf("%w: %s", errNotReplicated, n.Message)
}

// connSender sends statements over a connection, outside of a caller's transaction.
type connSender struct{ *pgx.Conn }

func (c connSender) send(ctx context.Context, b *pgx.Batch) error {
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	return cancelledWait(c.Conn)
}

// replication returns the worst failure that loses no commit of conn, which loses none
// in a power loss, and why it is not a failover.
func replication(ctx context.Context, conn *pgx.Conn) (worst store.Failure, because string, err error) {
	var standbys string
	if err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names')`).Scan(&standbys); err != nil {
		return 0, "", err
	}
	switch {
	case standbys == "":
		return store.PowerLoss, "synchronous_standby_names is empty: no commit waits for a standby", nil
	case !isWatched(conn):
		return store.PowerLoss, "the pool does not report cancelled waits for synchronous replication: pass its ConnConfig to postgres.WatchReplication", nil
	default:
		return store.Failover, "", nil
	}
}
