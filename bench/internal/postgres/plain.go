package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
)

// plainSchema is what one would write by hand for keys that must come once; the same
// where one also finds what is stuck and what is old without reading all of it; and a
// table of the domain. That the index of what is old has all rows in it is the cheapest:
// with those alone that have ended, two statements take 2 % more.
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

// work is what a side does on a pool of its own.
type work func(*pgxpool.Pool) (func(context.Context, *contest.Caller) error, error)

// naive claims and completes by two statements, each committed by itself.
func naive(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return two(pool, claimPlain, completePlain), nil
}

// kept does the same in the table in which what is stuck and what is old can be found.
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

// bare writes the row once, as it is in the end: durable, and no more.
func bare(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		_, err := pool.Exec(ctx, insertPlain, plainKey(c.N, c.Key()), payment.Result())
		return err
	}, nil
}

func plainKey(caller int, key string) string { return payment.Scope(caller) + ":" + key }
