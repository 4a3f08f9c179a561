package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semelgo/semel/store"
)

// gone tells what became of a transaction that run has ended.
func (t *transaction) gone(ctx context.Context, last *store.Change, failed error) (store.Verdict, error) {
	t.leave(ctx)
	verdict := t.find(ctx)
	switch {
	case failed == nil:
		return verdict, fmt.Errorf("end the transaction: %w", ErrEnded)
	case last == nil && verdict == store.NotCommitted:
		return verdict, failed
	default:
		return verdict, fmt.Errorf("%w: %w", ErrEnded, failed)
	}
}

// find asks the server what became of the transaction's number. If it was rolled
// back, what the handler wrote afterwards may have been committed by itself,
// unless nothing can have come after its ROLLBACK.
func (t *transaction) find(ctx context.Context) store.Verdict {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.store.commitBound)
	defer cancel()
	var status pgtype.Text
	err := t.store.pool.QueryRow(ctx, `SELECT pg_xact_status($1::text::xid8)`, t.number).Scan(&status)
	switch {
	case err != nil:
		return store.Unknown
	case status.String == "committed":
		return store.Committed
	case status.String == "aborted" && t.aloneRolledBack && !t.exposed:
		return store.NotCommitted
	default:
		return store.Unknown
	}
}
