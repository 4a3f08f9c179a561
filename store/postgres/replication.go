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
		conn.CustomData()[waitKey] = (*pgconn.Notice)(nil)
		if connected == nil {
			return nil
		}
		return connected(ctx, conn)
	}
	config.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		// The name of the server's function identifies the warning: its text depends on lc_messages.
		if _, ok := conn.CustomData()[waitKey]; ok && n.Routine == "SyncRepWaitForLSN" && n.SeverityUnlocalized == "WARNING" {
			conn.CustomData()[waitKey] = n
		}
		if notice != nil {
			notice(conn, n)
		}
	}
}

// waitKey is the key, in a connection's custom data, of what the server has reported since
// the last look. It is nil if that is nothing.
const waitKey = "semel.replication"

// cancelledWait returns the error of a commit of the connection whose wait for a standby
// was cancelled since the last call.
func cancelledWait(conn *pgx.Conn) error {
	n, _ := conn.PgConn().CustomData()[waitKey].(*pgconn.Notice)
	if n == nil {
		return nil
	}
	conn.PgConn().CustomData()[waitKey] = (*pgconn.Notice)(nil)
	return fmt.Errorf("%w: %s", errNotReplicated, n.Message)
}

// replication returns the worst failure that loses no commit of conn, which loses none
// in a power loss, and why it is not a failover.
func replication(ctx context.Context, conn *pgx.Conn) (worst store.Failure, because string, err error) {
	var standbys string
	if err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names')`).Scan(&standbys); err != nil {
		return 0, "", err
	}
	_, watched := conn.PgConn().CustomData()[waitKey]
	switch {
	case standbys == "":
		return store.PowerLoss, "synchronous_standby_names is empty: no commit waits for a standby", nil
	case !watched:
		return store.PowerLoss, "the pool does not report cancelled waits for synchronous replication: pass its ConnConfig to postgres.WatchReplication", nil
	default:
		return store.Failover, "", nil
	}
}
