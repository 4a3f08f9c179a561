package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
)

// plainSchema has three tables: a hand-written one for keys, the same with indexes
// that find stuck and old rows without a full scan, and a table of the domain. The
// index of old rows contains all rows, which is the cheapest: if it contained
// finished rows only, two statements would cost 2 % more.
const plainSchema = `
create table if not exists naive (
  key     text primary key,
  state   smallint not null,
  result  bytea,
  created timestamptz not null,
  expires timestamptz
);
create table if not exists naive_kept (like naive including all);
create index if not exists naive_stuck on naive_kept (created) where state = 1;
create index if not exists naive_old on naive_kept (expires);
create table if not exists domain (
  id     uuid primary key,
  payer  text not null,
  amount bigint not null
)`

const (
	claimPlain = `insert into naive` + claim
	claimKept  = `insert into naive_kept` + claim
	claim      = ` (key, state, created, expires)
values ($1, 1, now(), now() + interval '1 day') on conflict do nothing`

	completePlain = `update naive` + complete
	completeKept  = `update naive_kept` + complete
	complete      = ` set state = 2, result = $2 where key = $1 and state = 1`

	insertPlain = `insert into naive (key, state, result, created, expires)
values ($1, 2, $2, now(), now() + interval '1 day')`
)

// workload is what a side does on a pool of its own.
type workload func(*pgxpool.Pool) (func(context.Context, *contest.Caller) error, error)

// naive claims and completes by two statements, each in its own transaction.
func naive(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return two(pool, claimPlain, completePlain), nil
}

// kept does the same in the table whose stuck and old rows can be found.
func kept(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return two(pool, claimKept, completeKept), nil
}

func two(pool *pgxpool.Pool, claim, complete string) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := plainKey(c.N, c.Key())
		tag, err := pool.Exec(ctx, claim, key)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("key %s was there", key)
		}
		tag, err = pool.Exec(ctx, complete, key, payment.Result())
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("key %s was not claimed", key)
		}
		return err
	}
}

// bare inserts the finished row once: durable, and no more.
func bare(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		_, err := pool.Exec(ctx, insertPlain, plainKey(c.N, c.Key()), payment.Result())
		return err
	}, nil
}

func plainKey(caller int, key string) string { return payment.Scope(caller) + ":" + key }
