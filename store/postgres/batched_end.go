package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// commit commits after the callbacks, unless one of them passed over an error.
func (b *batched) commit(ctx context.Context) (store.SwapResult, store.Verdict, error) {
	if b.conn.Conn().PgConn().TxStatus() != inside {
		return b.rollBack(ctx, errors.New("semel/postgres: a callback of the batch passed over an error that aborted the transaction"))
	}
	tag, err := b.conn.Exec(ctx, `COMMIT`) // told also when the connection is lost behind it
	switch {
	case tag.String() == `COMMIT`:
		return store.SwapResult{Token: b.change.To.Token}, store.Committed, nil
	case err == nil:
		return store.SwapResult{}, store.NotCommitted, errors.New("commit: the server has rolled back")
	default:
		return store.SwapResult{}, b.verdict(err), b.store.fault("commit", withMark(err))
	}
}

// verdict is what an error of the COMMIT says.
func (b *batched) verdict(err error) store.Verdict {
	if rollsBack(err) {
		return store.NotCommitted
	}
	return store.Unknown
}

// failed says what the error means that ended the first trip. What the server says of
// a statement is proof: none of those behind it was run. What was lost on the way is
// none, unless COMMIT was not sent.
func (b *batched) failed(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	switch of := errorOf(err); {
	case of == nil && b.unsent(err):
		return b.rollBack(ctx, b.told(err))
	case notSent(err) && of == nil:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	case b.hasRun == len(b.queries) && b.ours && !b.calls:
		return b.ended(ctx, err, b.verdict(err))
	case b.calls && !b.conn.Conn().IsClosed():
		return b.notMade(ctx, err)
	case b.calls:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w: %w", store.ErrInterrupted, errLost, err)
	case of == nil || of.Code == codeUnknown:
		return store.SwapResult{}, store.Unknown, b.store.fault("commit", err)
	default:
		return b.notMade(ctx, err)
	}
}

// unsent says that the driver itself has refused a statement, for an argument that it
// cannot write for instance. It says so in words, or the connection is as it was.
func (b *batched) unsent(err error) bool {
	if e, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok && strings.Contains(e.Error(), "(build)") {
		return true
	}
	c := b.conn.Conn()
	return !b.right && !c.IsClosed() && !c.PgConn().IsBusy() && c.PgConn().TxStatus() == outside
}

// told is the error of a statement, with its number. One that was not sent is found by
// its text, unless the driver has changed that.
func (b *batched) told(err error) error {
	n := b.hasRun
	if e, ok := errors.AsType[pgx.ErrPreprocessingBatch](err); ok {
		n = slices.IndexFunc(b.queries, func(q *pgx.QueuedQuery) bool { return q.SQL == e.SQL() })
	}
	if n < 0 || !b.right && !notSent(err) {
		return fmt.Errorf("a statement of the batch: %w", err)
	}
	return fmt.Errorf("statement %d: %w", n+1, err)
}

// ended tells of a COMMIT that failed.
func (b *batched) ended(ctx context.Context, err error, v store.Verdict) (store.SwapResult, store.Verdict, error) {
	if v == store.NotCommitted {
		return b.rollBack(ctx, fmt.Errorf("commit: %w", err))
	}
	return store.SwapResult{}, v, b.store.fault("commit", err)
}

// notMade tells of a transaction in which a statement failed: the change, because of
// what stands or of who has the right, or one of the batch.
func (b *batched) notMade(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	of := errorOf(err)
	switch {
	case b.ours, notSent(err):
		return b.rollBack(ctx, b.told(err))
	case of == nil:
		return b.rollBack(ctx, err)
	case !b.right && of.Code == codeDivisionByZero, isBusy(err):
		_, _, _ = b.rollBack(ctx, err)
		return store.SwapResult{Busy: true}, store.NotCommitted, nil
	case b.tables.notInForce(b.change, err):
		_, _, _ = b.rollBack(ctx, err)
		return b.stands(ctx)
	case b.tables.hasNoPlace(err):
		_, _, err = b.rollBack(ctx, withoutPlace(b.change, err))
		return store.SwapResult{Err: err}, store.NotCommitted, nil
	case isRefusal(err):
		_, _, err = b.rollBack(ctx, err)
		return store.SwapResult{Err: err}, store.NotCommitted, nil
	default:
		return b.rollBack(ctx, err)
	}
}

// rollBack ends a transaction that says of itself that it is one.
func (b *batched) rollBack(ctx context.Context, cause error) (store.SwapResult, store.Verdict, error) {
	if c := b.conn.Conn(); !c.IsClosed() && c.PgConn().TxStatus() != outside {
		_, _ = c.Exec(ctx, `ROLLBACK`) // when it fails, the connection is not used again
	}
	return store.SwapResult{}, store.NotCommitted, withMark(cause)
}

// stands reads what stands instead of the change. When that is not to be had, nothing
// has begun all the same.
func (b *batched) stands(ctx context.Context) (store.SwapResult, store.Verdict, error) {
	answers, err := get(ctx, over{b.conn}, b.tables, frame{before: []string{b.store.texts.byKey}}, []store.ID{b.change.To.ID})
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	return answers[0], store.NotCommitted, nil
}
