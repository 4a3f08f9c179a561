package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel/store"
)

// connectionBound limits how long a call without a deadline, such as a list or a
// purge, waits for a connection of the pool. Such calls must not hang when the
// program uses the whole pool. It does not limit the call's work on the connection.
// For transactions of Atomic the engine has its own limit.
const connectionBound = 5 * time.Second

// connect takes a connection of the sessions, or one of the pool if none is free.
func (s *Store) connect(ctx context.Context) (lease, error) {
	on, err := s.tables(ctx)
	if err != nil {
		return lease{}, err
	}
	if own := s.sessions.take(ctx); own.Conn != nil {
		own.on, own.own = on, true
		return own, nil
	}
	return s.acquire(ctx)
}

// acquire takes a connection of the pool.
func (s *Store) acquire(ctx context.Context) (lease, error) {
	on, err := s.tables(ctx) // before a connection is taken
	if err != nil {
		return lease{}, err
	}
	conn, err := s.borrow(ctx)
	conn.on = on
	return conn, err
}

// borrow is acquire before the tables were found.
func (s *Store) borrow(ctx context.Context) (lease, error) {
	wait := ctx
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > connectionBound { //nolint:forbidigo // no instant of the protocol's
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, connectionBound)
		defer cancel()
	}
	conn, err := s.source.acquire(wait)
	if err != nil {
		return lease{}, fmt.Errorf("take a connection: %w", err)
	}
	return conn, nil
}

// admit waits for admission and takes a connection. The transaction on it may wait for
// locks, and its handler may need another connection. Without an error the caller must
// call dismiss.
func (s *Store) admit(ctx context.Context) (lease, error) {
	on, err := s.tables(ctx)
	if err == nil {
		err = s.gate.enter(ctx)
	}
	if err != nil {
		return lease{}, err
	}
	conn, err := s.source.acquire(ctx)
	if err != nil {
		s.gate.leave()
		return lease{}, fmt.Errorf("take a connection: %w", err)
	}
	conn.on = on
	return conn, nil
}

// dismiss releases the connection, which is closed if it is in a transaction.
func (s *Store) dismiss(conn lease) {
	conn.Release()
	s.gate.leave()
}

// batchSender is a connection or a transaction.
type batchSender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// send sends the statements that queue adds, within the frame, at once, and waits for
// all replies. Without an error all of them were executed, and outside of a transaction
// committed.
func send(ctx context.Context, in batchSender, f frame, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	for _, text := range f.before {
		b.Queue(text)
	}
	queue(b)
	for _, text := range f.after {
		b.Queue(text)
	}
	if err := in.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if conn, ok := in.(*pgx.Conn); ok && conn.PgConn().TxStatus() == outside {
		return cancelledWait(conn)
	}
	return nil
}

// trip sends the statements that queue adds over a connection of the pool, and adds to an
// error what the store was doing.
func (s *Store) trip(ctx context.Context, doing string, f frame, queue func(b *pgx.Batch, t *tables)) error {
	return s.on(ctx, doing, func(conn lease) error {
		return send(ctx, conn.Conn, f, func(b *pgx.Batch) { queue(b, conn.on) })
	})
}

// on calls do with a connection of the pool, and adds to an error what the store was doing.
func (s *Store) on(ctx context.Context, doing string, do func(conn lease) error) error {
	conn, err := s.acquire(ctx)
	if err == nil {
		defer conn.Release()
		err = do(conn)
	}
	return s.fault(doing, err)
}

// collect reads the rows of a result.
func collect[T any](all *[]T, read pgx.RowToFunc[T]) func(rows pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*all, err = pgx.CollectRows(rows, read)
		return err
	}
}

// collectRecords reads the records of a result, after columns that are skipped.
func collectRecords(all *[]store.Record, skipped int) func(rows pgx.Rows) error {
	return collect(all, newReader(skipped).read)
}
