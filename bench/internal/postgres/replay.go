package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
)

const (
	replayCallers = 256
	// replayed is the number of keys of each caller, which repeats them.
	replayed = 40
)

// readPlain reads the row after the insert has found a duplicate.
const readPlain = `select state, result from naive where key = $1`

// insertPlains inserts the finished rows of one caller.
const insertPlains = `insert into naive (key, state, result, created, expires)
select $2 || key, 2, $3, now(), now() + interval '1 day' from unnest($1::text[]) key`

// replay compares repeated calls with an insert that finds a duplicate and a select
// of the row.
func replay() lab.Experiment {
	faster := comparisonRow{
		Row:  goal.AtLeast("Postgres, throughput of replays at 256 callers without local cache, against insert then select", "x", 5, 8),
		side: "replay", by: "insert, select",
	}
	log := goal.AtMost("Postgres, log written per replay", "bytes", 1, 0).NoAim()
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		arena, err := NewArena(ctx, l, "replays")
		if err != nil {
			return nil, err
		}
		keys, ours, err := arena.known(ctx)
		if err != nil {
			return nil, err
		}
		plain, err := arena.best(ctx, "insert, select", replayCallers, again(keys))
		if err != nil {
			return nil, err
		}
		c := arena.Contest("postgres, replays", replayCallers, plain, ours)
		o, err := c.Run(ctx, l)
		if err != nil {
			return nil, err
		}
		found := judge(o, []comparisonRow{faster})
		written, err := arena.written(ctx, l, c, ours)
		if err != nil {
			return arena.Say(found), err
		}
		written.Row = log.Name
		return append(arena.Say(found), written), nil
	}
	return lab.Experiment{Name: "postgres, replays", Rows: []goal.Row{faster.Row, log}, Run: run}
}

// known runs all keys once on both sides, and returns them, and the side that
// repeats them with Semel.
func (a *Arena) known(ctx context.Context) ([][]string, contest.Side, error) {
	engine, err := a.Engine(a.own)
	if err != nil {
		return nil, contest.Side{}, err
	}
	if err := a.Fresh(ctx, ""); err != nil {
		return nil, contest.Side{}, err
	}
	keys, err := contest.Once(ctx, replayCallers, func(ctx context.Context, c *contest.Caller) ([]string, error) {
		mine := make([]string, replayed)
		for i := range mine {
			mine[i] = c.Key()
			if err := pay(ctx, engine, c.N, mine[i], false); err != nil {
				return nil, err
			}
		}
		return mine, nil
	})
	if err != nil {
		return nil, contest.Side{}, fmt.Errorf("do all keys once: %w", err)
	}
	for caller, mine := range keys {
		if _, err := a.admin.Exec(ctx, insertPlains, mine, payment.Scope(caller)+":", payment.Result()); err != nil {
			return nil, contest.Side{}, fmt.Errorf("insert keys: %w", err)
		}
	}
	side := contest.Side{Name: "replay", Do: func(ctx context.Context, c *contest.Caller) error {
		return pay(ctx, engine, c.N, keys[c.N][c.Rand.IntN(replayed)], true)
	}}
	a.said = append(a.said, fmt.Sprintf("replay has %d", ourConns))
	return keys, side, a.Filled(ctx)
}

// pay calls the operation with a key. replayed says whether the result must be a
// replay.
func pay(ctx context.Context, e semel.Runner, caller int, key string, before bool) error {
	_, replayed, err := semel.Do(ctx, e, payment.Call(caller, key), func(context.Context) (semel.Raw, error) {
		return payment.Result(), nil
	})
	if err == nil && replayed != before {
		err = fmt.Errorf("key %s: replayed is %t", key, replayed)
	}
	return err
}

// again inserts a duplicate, and then selects the row.
func again(keys [][]string) workload {
	return func(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
		return func(ctx context.Context, c *contest.Caller) error {
			key := plainKey(c.N, keys[c.N][c.Rand.IntN(replayed)])
			tag, err := pool.Exec(ctx, claimPlain, key)
			if err != nil {
				return err
			}
			if tag.RowsAffected() != 0 {
				return fmt.Errorf("key %s was not there", key)
			}
			var state int16
			var result []byte
			if err := pool.QueryRow(ctx, readPlain, key).Scan(&state, &result); err != nil {
				return err
			}
			if len(result) != payment.Size {
				return errors.New("the result is another")
			}
			return nil
		}, nil
	}
}

// written runs replays only, and measures the growth of the log for each. No row
// may be written, locked or moved.
func (a *Arena) written(ctx context.Context, l *lab.Lab, c *contest.Contest, ours contest.Side) (goal.Finding, error) {
	// Autovacuum is off, because its writes would count.
	if err := a.tidying(ctx, false); err != nil {
		return goal.Finding{}, err
	}
	l.Closing(func() error { return a.tidying(context.WithoutCancel(ctx), true) })
	before, err := a.state(ctx)
	if err != nil {
		return goal.Finding{}, err
	}
	c.Name, c.Sides, c.Before, c.Rounds = "postgres, replays alone", []contest.Side{ours}, nil, 1
	o, err := c.Run(ctx, l)
	if err != nil {
		return goal.Finding{}, err
	}
	after, err := a.state(ctx)
	if err != nil {
		return goal.Finding{}, err
	}
	if before.rows != after.rows {
		return goal.Finding{}, errors.New("a replay has written a row")
	}
	ops := float64(o.Rounds[0][ours.Name].Ops)
	detail := []string{
		fmt.Sprintf("%d bytes in %.0f replays and those of the warming up", after.log-before.log, ops),
		"place, xmin and xmax of every row are as before: none was written, locked or moved",
	}
	return goal.Finding{Value: float64(after.log-before.log) / ops, Detail: strings.Join(detail, "; ")}, nil
}

// tidying turns autovacuum on or off.
func (a *Arena) tidying(ctx context.Context, on bool) error {
	for _, sql := range []string{fmt.Sprintf("alter system set autovacuum = %t", on), "select pg_reload_conf()"} {
		if err := a.exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// databaseState is the state of the database.
type databaseState struct {
	rows string // digest of the positions of all rows, and of their writers and lockers
	log  int64  // position in the log, in bytes
}

func (a *Arena) state(ctx context.Context) (databaseState, error) {
	var s databaseState
	err := a.admin.QueryRow(ctx, `select md5(string_agg(concat(id, ctid, xmin, xmax), ',' order by id)),
		(pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint from semel_records`).Scan(&s.rows, &s.log)
	if err != nil {
		return s, fmt.Errorf("look at the records: %w", err)
	}
	return s, nil
}
