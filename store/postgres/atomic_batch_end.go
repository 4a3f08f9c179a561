package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// commit commits after the callbacks, unless one of them ignored an error.
func (b *batchTx) commit(ctx context.Context) (store.SwapResult, store.Verdict, error) {
	if b.conn.PgConn().TxStatus() != inside {
		return b.rollBack(ctx, errors.New("semel/postgres: a callback of the batch passed over an error that aborted the transaction"))
	}
	tag, err := b.conn.Exec(ctx, `COMMIT`) // the reply counts even if the connection is lost afterwards
	cancelled := cancelledWait(b.conn.Conn)
	switch {
	case cancelled != nil:
		return store.SwapResult{}, store.Unknown, b.store.fault("commit", cancelled)
	case tag.String() == `COMMIT`:
		return store.SwapResult{Token: b.change.To.Token}, store.Committed, nil
	case err == nil:
		return store.SwapResult{}, store.NotCommitted, errors.New("commit: the server has rolled back")
	default:
		return store.SwapResult{}, b.verdict(err), b.store.fault("commit", withMark(err))
	}
}

// verdict returns the verdict for an error of COMMIT.
func (b *batchTx) verdict(err error) store.Verdict {
	if rollsBack(err) {
		return store.NotCommitted
	}
	return store.Unknown
}

// failed handles an error of the first round trip. An error that the server returns
// for a statement is proof: it has executed no later statement. A lost reply is no
// proof, unless COMMIT was not sent.
func (b *batchTx) failed(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	switch of := errorOf(err); {
	case of == nil && b.isNotSent(err):
		return b.rollBack(ctx, b.statementError(err))
	case isNotSent(err) && of == nil:
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	case b.hasRun == len(b.queries) && b.ours && !b.calls:
		return b.commitError(ctx, err, b.verdict(err))
	case b.calls && !b.conn.IsClosed():
		return b.notApplied(ctx, err)
	case b.calls:
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

// commitError handles a failed COMMIT.
func (b *batchTx) commitError(ctx context.Context, err error, v store.Verdict) (store.SwapResult, store.Verdict, error) {
	if v == store.NotCommitted {
		return b.rollBack(ctx, fmt.Errorf("commit: %w", err))
	}
	return store.SwapResult{}, v, b.store.fault("commit", err)
}

// notApplied handles a transaction in which a statement failed: the change, because
// of the current record or of another transaction's right, or a statement of the
// batch.
func (b *batchTx) notApplied(ctx context.Context, err error) (store.SwapResult, store.Verdict, error) {
	of := errorOf(err)
	switch {
	case b.ours, isNotSent(err):
		return b.rollBack(ctx, b.statementError(err))
	case of == nil:
		return b.rollBack(ctx, err)
	case !b.right && of.Code == codeDivisionByZero, isBusy(err):
		_, _, _ = b.rollBack(ctx, err)
		return store.SwapResult{Busy: true}, store.NotCommitted, nil
	case b.tables.isSuperseded(b.change, err):
		_, _, _ = b.rollBack(ctx, err)
		return b.current(ctx)
	case b.tables.hasNoPartition(err):
		_, _, err = b.rollBack(ctx, noPartitionError(b.change, err))
		return store.SwapResult{Err: err}, store.NotCommitted, nil
	case isRefusal(err):
		_, _, err = b.rollBack(ctx, err)
		return store.SwapResult{Err: err}, store.NotCommitted, nil
	default:
		return b.rollBack(ctx, err)
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
	answers, err := get(ctx, connSender{b.conn.Conn}, b.tables, frame{before: []string{b.store.texts.byKey}},
		lookup{ids: []store.ID{b.change.To.ID}, confirmed: b.store.replicated.Load()})
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, err)
	}
	return answers[0], store.NotCommitted, nil
}
