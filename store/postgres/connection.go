package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// connectionBound limits how long a call without a deadline, such as a list or a
// purge, waits for a connection of the pool. Such calls must not hang when the
// program uses the whole pool. It does not limit the call's work on the connection.
// For transactions of Atomic the engine has its own limit.
const connectionBound = 5 * time.Second

// acquire takes a connection of the pool.
func (s *Store) acquire(ctx context.Context) (lease, error) {
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

// txSender sends statements in a transaction of the caller.
type txSender struct{ by batchSender }

type batchSender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func (o txSender) send(ctx context.Context, b *pgx.Batch) error {
	return o.by.SendBatch(ctx, b).Close()
}

// poolSender sends statements over a connection of the pool.
type poolSender struct{ s *Store }

func (p poolSender) send(ctx context.Context, b *pgx.Batch) error {
	conn, err := p.s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return connSender{conn.Conn}.send(ctx, b)
}

// query calls each with the rows of a statement, over a connection of the pool.
func query[T any](ctx context.Context, s *Store, each pgx.RowToFunc[T], text string, args ...any) ([]T, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, each)
}

// queryRow reads the only row of a statement into the values that into points to.
// It fails with pgx.ErrNoRows if there is none.
func (s *Store) queryRow(ctx context.Context, into []any, text string, args ...any) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, text, args...).Scan(into...); err != nil {
		return err
	}
	return cancelledWait(conn.Conn)
}
