package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/payment"
)

// plainSchema is what one would write by hand for keys that must come once, and
// a table of the domain.
const plainSchema = `
create table if not exists naive (
  key     text primary key,
  state   smallint not null,
  result  bytea,
  created timestamptz not null,
  expires timestamptz
);
create table if not exists domain (
  id     uuid primary key,
  payer  text not null,
  amount bigint not null
)`

const (
	claimPlain = `insert into naive (key, state, created, expires)
values ($1, 1, now(), now() + interval '1 day') on conflict do nothing`
	completePlain = `update naive set state = 2, result = $2 where key = $1 and state = 1`
	insertPlain   = `insert into naive (key, state, result, created, expires)
values ($1, 2, $2, now(), now() + interval '1 day')`
)

// work is what a side does on a pool of its own.
type work func(*pgxpool.Pool) (func(context.Context, *contest.Caller) error, error)

// naive claims and completes by two statements, each committed by itself.
func naive(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		key := plainKey(c.N, c.Key())
		tag, err := pool.Exec(ctx, claimPlain, key)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return fmt.Errorf("key %s was there", key)
		}
		tag, err = pool.Exec(ctx, completePlain, key, payment.Result())
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("key %s was not claimed", key)
		}
		return err
	}, nil
}

// bare writes the row once, as it is in the end: durable, and no more.
func bare(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		_, err := pool.Exec(ctx, insertPlain, plainKey(c.N, c.Key()), payment.Result())
		return err
	}, nil
}

func plainKey(caller int, key string) string { return payment.Scope(caller) + ":" + key }
