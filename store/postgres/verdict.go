package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// gone returns the verdict of a transaction that run has ended. If it was rolled
// back, later writes of the handler may have been committed one by one, unless
// there can have been none.
func (t *transaction) gone(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	t.leave(ctx)
	verdict := t.find(ctx, true)
	if verdict == store.NotCommitted && t.sent == mayEndAndWrite {
		verdict = store.Unknown
	}
	switch {
	case failed == nil:
		return verdict, fmt.Errorf("end the transaction: %w: %w", ErrEnded, store.ErrTxEndedByHandler)
	case last == nil && verdict == store.NotCommitted:
		return verdict, withMark(failed)
	default:
		return verdict, fmt.Errorf("%w: %w: %w", ErrEnded, store.ErrTxEndedByHandler, failed)
	}
}

// cut returns the verdict of a transaction whose connection cannot be used any
// more. Only the handler can have sent a COMMIT: if it cannot have, the server has
// rolled back, or will. lost means that the connection is lost, and perhaps the
// server has crashed.
func (t *transaction) cut(ctx context.Context, lost bool, cause error) (store.Verdict, error) {
	t.leave(ctx)
	if t.sent == staysInside {
		return store.NotCommitted, withMark(cause)
	}
	// The server would continue a running statement until it notices that the connection is lost.
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), min(time.Second, t.store.commitBound))
	defer done()
	_ = t.conn.PgConn().CancelRequest(bounded) // best effort
	switch verdict := t.find(ctx, !lost); {
	case verdict == store.Committed:
		return verdict, fmt.Errorf("%w: %w: %w", ErrEnded, store.ErrTxEndedByHandler, cause)
	case verdict == store.NotCommitted && t.sent != mayEndAndWrite:
		return verdict, withMark(cause)
	default:
		return store.Unknown, fmt.Errorf("%w: %w", store.ErrTxEndedByHandler, cause)
	}
}

// find asks the server how the transaction ended, by its number, until it has ended
// and the server replies, but not for longer than the limit of a COMMIT.
//
// The answer is reliable only if the server has not crashed. After a crash the
// server reuses numbers of transactions that are not in its log, so a committed
// number may be another transaction's.
func (t *transaction) find(ctx context.Context, stayed bool) store.Verdict {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		verdict, answered, again := t.look(ctx)
		stayed = stayed && answered
		switch {
		case verdict == store.Committed && !stayed:
			return store.Unknown
		case !again:
			return verdict
		}
		if clock.Sleep(ctx, wait) != nil {
			return store.Unknown
		}
	}
}

// look asks once. If commits wait for a standby, a standby confirms the commit before look
// reports it. A transaction that was prepared for a two-phase commit is open until it is
// committed or rolled back.
func (t *transaction) look(ctx context.Context) (verdict store.Verdict, answered, again bool) {
	const read = `SELECT status, prepared FROM (SELECT pg_xact_status($1::text::xid8),
EXISTS (SELECT FROM pg_prepared_xacts WHERE transaction = ($1::text::xid8)::xid) OFFSET 0) AS found (status, prepared)
WHERE CASE WHEN status = 'committed' THEN ` + emit + ` IS NOT NULL ELSE true END`
	var status pgtype.Text
	var prepared bool
	err := t.store.trip(ctx, "find how a transaction ended", frame{}, func(b *pgx.Batch, _ *tables) {
		b.Queue(read, t.number).QueryRow(func(row pgx.Row) error { return row.Scan(&status, &prepared) })
	})
	switch {
	case err != nil:
		return store.Unknown, false, codeOf(err) == "" || isInterrupted(err)
	case status.String == "committed":
		return store.Committed, true, false
	case status.String == "aborted":
		return store.NotCommitted, true, false
	default:
		return store.Unknown, true, status.String == "in progress" && !prepared
	}
}
