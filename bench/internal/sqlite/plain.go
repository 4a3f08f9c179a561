package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
)

const plainSchema = `create table naive (
  key     text primary key,
  state   integer not null,
  result  blob,
  created integer not null,
  expires integer
) without rowid`

const (
	claimPlain = `insert into naive (key, state, created, expires)
values (?, 1, unixepoch(), unixepoch() + 86400) on conflict do nothing`
	completePlain = `update naive set state = 2, result = ? where key = ? and state = 1`
	insertPlain   = `insert into naive (key, state, result, created, expires)
values (?, 2, ?, unixepoch(), unixepoch() + 86400)`
)

type workload func(ctx context.Context, db *sql.DB) (func(context.Context, *contest.Caller) error, error)

// naive claims and completes by two prepared statements, each in its own
// transaction. Their context cannot end, because the driver starts a goroutine for
// each statement whose context can.
func naive(ctx context.Context, db *sql.DB) (func(context.Context, *contest.Caller) error, error) {
	claim, err := db.PrepareContext(ctx, claimPlain)
	if err != nil {
		return nil, err
	}
	complete, err := db.PrepareContext(ctx, completePlain)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c *contest.Caller) error {
		key := payment.Scope(c.N) + ":" + c.Key()
		ctx = context.WithoutCancel(ctx)
		if err := one(claim.ExecContext(ctx, key)); err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if err := one(complete.ExecContext(ctx, []byte(payment.Result()), key)); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
		return nil
	}, nil
}

// bare inserts the finished row once.
func bare(ctx context.Context, db *sql.DB) (func(context.Context, *contest.Caller) error, error) {
	insert, err := db.PrepareContext(ctx, insertPlain)
	return func(ctx context.Context, c *contest.Caller) error {
		return one(insert.ExecContext(context.WithoutCancel(ctx), payment.Scope(c.N)+":"+c.Key(), []byte(payment.Result())))
	}, err
}

func one(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows, %w", n, err)
	}
	return nil
}
