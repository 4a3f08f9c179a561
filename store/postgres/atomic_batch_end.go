package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// failed handles an error. An error that the server returns
// for a statement is proof: it has executed no later statement. A lost reply is no
// proof, unless COMMIT was not sent.
func (b *batchTx) failed(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	switch of := errorOf(err); {
	case of == nil && b.isNotSent(err):
		return b.rollBack(ctx, b.statementError(err))
	case isNotSent(err) && of == nil:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	case b.hasRun == len(b.queries) && b.ours && b.committing && rollsBack(err):
		return b.rollBack(ctx, fmt.Errorf("commit: %w", err))
	case b.hasRun == len(b.queries) && b.ours && b.committing:
		return store.SwapResult{}, store.Unknown, b.store.fault("commit", err)
	case !b.committing && !b.conn.IsClosed():
		return b.notApplied(ctx, err)
	case !b.committing:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w: %w", store.ErrInterrupted, errConnLost, err)
	case of == nil || of.Code == codeUnknown:
		return store.SwapResult{}, store.Unknown, b.store.fault("commit", err)
	default:
		return b.notApplied(ctx, err)
	}
}

// isNotSent reports whether the driver itself refused a statement, because it
// cannot encode an argument for example. The error says so, or the connection is
// unchanged.
func (b *batchTx) isNotSent(err error) bool {
	if e, ok := errtype.Find[pgx.ErrPreprocessingBatch](err); ok && strings.Contains(e.Error(), "(build)") {
		return true
	}
	c := b.conn.Conn
	return !b.right && !c.IsClosed() && !c.PgConn().IsBusy() && c.PgConn().TxStatus() == outside
}

// statementError adds the number of the statement to its error. A statement that
// was not sent is found by its text, unless the driver has changed it.
func (b *batchTx) statementError(err error) error {
	n := b.hasRun
	if e, ok := errtype.Find[pgx.ErrPreprocessingBatch](err); ok {
		n = slices.IndexFunc(b.queries, func(q *pgx.QueuedQuery) bool { return q.SQL == e.SQL() })
	}
	if n < 0 || !b.right && !isNotSent(err) {
		return fmt.Errorf("a statement of the batch: %w", err)
	}
	return fmt.Errorf("statement %d: %w", n+1, err)
}

// notApplied handles a transaction in which a statement failed: the change, because
// of the current record or of another transaction's right, or a statement of the
// batch.
func (b *batchTx) notApplied(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	ofBatch := b.ours || isNotSent(err)
	if ofBatch {
		err = b.statementError(err)
	}
	of := errorOf(err)
	result, verdict, marked := b.rollBack(ctx, err)
	switch {
	case ofBatch, of == nil:
		return result, verdict, marked
	case !b.right && of.Code == codeDivisionByZero, isBusy(err):
		return store.SwapResult{Busy: true}, verdict, nil
	case b.conn.on.isSuperseded(b.change, err):
		return b.current(ctx)
	case b.conn.on.hasNoPartition(err):
		return store.SwapResult{Err: noPartitionError(b.change, err)}, verdict, nil
	case isRefusal(err):
		return store.SwapResult{Err: marked}, verdict, nil
	default:
		return result, verdict, marked
	}
}

// rollBack rolls back a transaction with an explicit BEGIN.
func (b *batchTx) rollBack(ctx context.Context, cause error) (store.SwapResult, store.Verdict, error) {
	if c := b.conn.Conn; !c.IsClosed() && c.PgConn().TxStatus() != outside {
		_, _ = c.Exec(ctx, `ROLLBACK`) // if it fails, the connection is not used again
	}
	return store.SwapResult{}, store.NotCommitted, withMark(cause)
}

// current reads the current record. If that fails, nothing has begun.
func (b *batchTx) current(ctx context.Context) (store.SwapResult, store.Verdict, error) {
	answers, err := get(ctx, b.conn.Conn, b.conn.on, b.store.texts.keyed,
		lookup{ids: []store.ID{b.change.To.ID}, confirmed: b.store.replicated.Load()})
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	return answers[0], store.NotCommitted, nil
}
