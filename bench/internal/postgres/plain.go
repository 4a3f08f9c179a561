package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// naive claims and completes by two statements, each committed by itself.
func naive(pool *pgxpool.Pool) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := payment.Scope(c.N) + ":" + c.Key()
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
	}
}

// bare writes the row once, as it is in the end: durable, and no more.
func bare(pool *pgxpool.Pool) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		_, err := pool.Exec(ctx, insertPlain, payment.Scope(c.N)+":"+c.Key(), payment.Result())
		return err
	}
}

// Naive is the side of the two plain statements, and Bare that of the one insert,
// each with as many connections as serve it best: that is tried, and the text
// says what came of it.
func (a *Arena) Naive(ctx context.Context, callers int) (contest.Side, string, error) {
	return a.best(ctx, "naive", callers, naive)
}

// Bare is the side of one insert of the finished row.
func (a *Arena) Bare(ctx context.Context, callers int) (contest.Side, string, error) {
	return a.best(ctx, "bare", callers, bare)
}

// best tries pools of several sizes for a side, and takes the fastest. The second
// result says what was tried.
func (a *Arena) best(ctx context.Context, name string, callers int,
	do func(*pgxpool.Pool) func(context.Context, *contest.Caller) error,
) (contest.Side, string, error) {
	sizes := []int{callers}
	for _, n := range []int{16, 32, 64} {
		if n < callers {
			sizes = append(sizes, n)
		}
	}
	slices.Sort(sizes)
	sides, pools := make([]contest.Side, len(sizes)), make([]*pgxpool.Pool, len(sizes))
	for i, n := range sizes {
		pool, err := a.server.Pool(ctx, a.lab, a.name, n)
		if err != nil {
			return contest.Side{}, "", err
		}
		sides[i], pools[i] = contest.Side{Name: strconv.Itoa(n), Do: do(pool)}, pool
	}
	at := 0
	if len(sides) > 1 {
		trial := a.Contest(fmt.Sprintf("connections of %s at %d", name, callers), callers, sides...)
		trial.Rounds = 2
		o, err := trial.Run(ctx, a.lab)
		if err != nil {
			return contest.Side{}, "", err
		}
		at = fastest(o, sides)
	}
	for i, pool := range pools {
		if i != at {
			pool.Close()
		}
	}
	said := fmt.Sprintf("%s has %d connections, the fastest of %s", name, sizes[at], list(sizes))
	return contest.Side{Name: name, Do: sides[at].Do}, said, nil
}

func fastest(o *contest.Outcome, sides []contest.Side) int {
	best := 0
	for i, side := range sides {
		if o.Of(side.Name, contest.Throughput) > o.Of(sides[best].Name, contest.Throughput) {
			best = i
		}
	}
	return best
}

func list(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ", "), "[]")
}
