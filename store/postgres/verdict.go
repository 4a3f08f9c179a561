package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// gone tells what became of a transaction that run has ended. If it was rolled
// back, what the handler wrote afterwards may have been committed by itself,
// unless nothing can have come afterwards.
func (t *transaction) gone(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	t.leave(ctx)
	verdict := t.find(ctx, true)
	if exposed, sent := t.handed(); verdict == store.NotCommitted && (exposed || sent == reachBeyond) {
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

// cut tells what became of a transaction whose connection cannot be used to the
// end. Only the handler can have sent a COMMIT: unless it may have, the server has
// rolled back, or will. With lost the connection is gone, and perhaps the server
// was.
func (t *transaction) cut(ctx context.Context, lost bool, cause error) (store.Verdict, error) {
	t.leave(ctx)
	exposed, sent := t.handed()
	if !exposed && sent == reachInside {
		return store.NotCommitted, withMark(cause)
	}
	t.cancel(ctx)
	switch verdict := t.find(ctx, !lost); {
	case verdict == store.Committed:
		return verdict, fmt.Errorf("%w: %w: %w", ErrEnded, store.ErrTxEndedByHandler, cause)
	case verdict == store.NotCommitted && sent != reachBeyond:
		return verdict, withMark(cause)
	default:
		return store.Unknown, fmt.Errorf("%w: %w", store.ErrTxEndedByHandler, cause)
	}
}

// cancel asks the server to end the statement that nobody waits for any more,
// which it would otherwise go on with before it sees that the connection is lost.
func (t *transaction) cancel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(time.Second, t.store.commitBound))
	defer cancel()
	_ = t.session.PgConn().CancelRequest(ctx) // a courtesy
}

// lost is what is told of a connection that was lost while the handler had it.
func (t *transaction) lost(failed error) error {
	return errors.Join(failed, fmt.Errorf("%w: %w", errLost, cmp.Or(t.broken, failed, errLost)))
}

// find asks the server what became of the transaction's number, until it is over
// and the server answers, but not for longer than a COMMIT is given.
//
// Whether the number committed is known only if the server has stayed. After a
// crash it gives out again the numbers of transactions of which its log knows
// nothing, so that the one that is found committed may be another's.
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
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return store.Unknown
		}
	}
}

// look asks once. What was prepared for a two-phase commit is open until somebody
// ends that.
func (t *transaction) look(ctx context.Context) (verdict store.Verdict, answered, again bool) {
	const read = `SELECT pg_xact_status($1::text::xid8),
EXISTS (SELECT FROM pg_prepared_xacts WHERE transaction = ($1::text::xid8)::xid)`
	var status pgtype.Text
	var prepared bool
	err := t.store.queryRow(ctx, []any{&status, &prepared}, read, t.number)
	switch {
	case err != nil:
		return store.Unknown, false, codeOf(err) == "" || isBroken(err)
	case status.String == "committed":
		return store.Committed, true, false
	case status.String == "aborted":
		return store.NotCommitted, true, false
	default:
		return store.Unknown, true, status.String == "in progress" && !prepared
	}
}
