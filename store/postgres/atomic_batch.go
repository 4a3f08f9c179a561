package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semelgo/semel/store"
)

// AtomicBatch begins a transaction, makes the change, runs the statements of the batch and
// commits, in one round trip, for which the server has the limit of a statement and ten seconds. If the
// change is not applied, or another transaction has the right, a second round trip reads
// the record, and none of the statements was executed.
//
// A batch whose queries have callbacks uses a second round trip for its COMMIT, so that
// an error of a callback, or a wrong result, rolls everything back. A batch of a driver's
// own transaction, statements that might end the transaction, and statements that are
// sent by a prepared name are refused with [ErrEnded]. Errors of statements are PostgreSQL's, with the number
// of the statement, from 1.
func (s *Store) AtomicBatch(ctx context.Context, change store.Change, hold bool, batch *pgx.Batch) (store.SwapResult, store.Verdict, error) {
	if err := check(&change); err != nil {
		return store.SwapResult{Err: err}, store.NotCommitted, nil
	}
	b := &batchTx{store: s, change: &change, hold: hold}
	if batch != nil {
		b.queries = batch.QueuedQueries
		b.calls = slices.ContainsFunc(b.queries, func(q *pgx.QueuedQuery) bool { return q.Fn != nil })
		if effectOfBatch(batch) != staysInside {
			return store.SwapResult{}, store.NotCommitted, fmt.Errorf("a statement of the batch may end the transaction: %w", ErrEnded)
		}
	}
	conn, err := s.admit(ctx)
	if err != nil {
		return store.SwapResult{}, store.NotCommitted, fmt.Errorf("%w: %w", store.ErrNotStarted, s.fault("begin", err))
	}
	defer s.dismiss(conn) // also when a callback panics or ends its goroutine
	b.conn = conn
	return b.run(ctx)
}

// batchTx is one call of AtomicBatch.
type batchTx struct {
	store   *Store
	change  *store.Change
	hold    bool
	queries []*pgx.QueuedQuery
	calls   bool // some queries have callbacks, so COMMIT waits for them

	conn lease

	right, ours bool // the right was taken; the change was made
	hasRun      int  // number of executed queries
	committing  bool // COMMIT was sent
	over        bool // COMMIT was answered, so that nothing later matters
}

func (b *batchTx) run(ctx context.Context) (store.SwapResult, store.Verdict, error) {
	bounded, done := context.WithTimeout(context.WithoutCancel(ctx), b.bound())
	defer done()
	b.committing = !b.calls
	err := b.conn.SendBatch(bounded, b.build()).Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.bound())
	defer cancel()
	if err == nil && b.calls {
		if b.conn.PgConn().TxStatus() != inside {
			return b.rollBack(ctx, errors.New("semel/postgres: a callback of the batch passed over an error that aborted the transaction"))
		}
		var tag pgconn.CommandTag
		tag, err = b.conn.Exec(ctx, `COMMIT`)
		b.committing = true
		_ = b.isOver(tag) // the reply counts even if the connection is lost afterwards
	}
	cancelled := cancelledWait(b.conn.Conn)
	switch {
	case cancelled != nil:
		return store.SwapResult{}, store.Unknown, b.store.fault("commit", cancelled)
	case b.over:
		return store.SwapResult{Token: b.change.To.Token}, store.Committed, nil
	case err != nil:
		return b.failed(ctx, err)
	default:
		return b.rollBack(ctx, errors.New("semel/postgres: the server has rolled back, or a statement of the batch has left its transaction open"))
	}
}

func (b *batchTx) isOver(tag pgconn.CommandTag) error { b.over = tag.String() == `COMMIT`; return nil }

// bound is the limit of a round trip.
func (b *batchTx) bound() time.Duration { return b.store.statementBound + b.store.commitBound }

// build returns the statements of the first round trip.
func (b *batchTx) build() *pgx.Batch {
	send := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(b.queries)+6)}
	send.BeginTx(pgx.TxOptions{IsoLevel: b.store.options.Isolation})
	send.Queue(b.store.texts.change, rightTo(b.change.To.ID, b.hold)).Exec(func(pgconn.CommandTag) error { b.right = true; return nil })
	k, args := statement(b.change)
	send.Queue(b.conn.on.in(lastOf[k]), args...).Exec(func(pgconn.CommandTag) error { b.ours = true; return nil })
	send.Queue(b.store.texts.lent.givenBack)
	for _, q := range b.queries { // copied, because the driver writes into the queries it sends
		send.QueuedQueries = append(send.QueuedQueries, &pgx.QueuedQuery{SQL: q.SQL, Arguments: q.Arguments, Fn: b.countingCallback(q)})
	}
	if !b.calls {
		send.Queue(`COMMIT`).Exec(b.isOver)
	}
	return send
}

// countingCallback counts a query and calls its own callback.
func (b *batchTx) countingCallback(q *pgx.QueuedQuery) func(pgx.BatchResults) error {
	return func(r pgx.BatchResults) (err error) {
		if q.Fn != nil {
			err = q.Fn(r)
		} else {
			_, err = r.Exec()
		}
		if err == nil {
			b.hasRun++
		}
		return err
	}
}
