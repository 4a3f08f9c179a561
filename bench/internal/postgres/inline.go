package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
)

const insertDomain = `insert into domain (id, payer, amount) values ($1, $2, $3)`

const inlineCallers = 64

// inline compares a transaction with one insert with the same transaction under
// semel.DoTx.
func inline() lab.Experiment {
	const same = ", against the same transaction without idempotency"
	rows := []comparisonRow{
		{Row: goal.AtLeast("Postgres, throughput of DoTx at 64 callers"+same, "x", 0.55, 0.8), side: "DoTx", by: "transaction"},
		{Row: goal.AtLeast("Postgres, throughput of DoBatch at 64 callers"+same, "x", 0.9, 1), side: "DoBatch", by: "transaction"},
		{
			Row:  goal.Shown("Postgres, throughput of DoBatch at 64 callers, against the same batch without idempotency", "x"),
			side: "DoBatch", by: "batch",
		},
	}
	t := transactions{rows: rows, all: contest.Outcome{Callers: inlineCallers}}
	return lab.Experiment{
		Name: "postgres, transactions", Rows: []goal.Row{rows[0].Row, rows[1].Row, rows[2].Row},
		Run: t.visit, Spread: true,
	}
}

// transactions are measured in rounds that are spread over the run: their cost
// depends on how warm the processors' caches are, and so on other load.
type transactions struct {
	rows  []comparisonRow
	conns []int    // the best number for each side, found in the first call
	said  []string // about it
	all   contest.Outcome
}

// visit adds rounds, and returns the findings of all rounds.
func (t *transactions) visit(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	arena, err := NewArena(ctx, l, "inline")
	if err != nil {
		return nil, err
	}
	arena.said = t.said
	sides, err := t.sides(ctx, arena)
	if err != nil {
		return nil, err
	}
	t.said = arena.said
	// The first hundreds of transactions of a session are more expensive than later
	// ones, so an unmeasured slot comes before.
	warm := arena.Contest("postgres, transactions, warming up", inlineCallers, sides...)
	warm.Rounds, warm.Slot = 1, l.Slot()/2
	if _, err := warm.Run(ctx, l); err != nil {
		return nil, err
	}
	c := arena.Contest("postgres, transactions", inlineCallers, sides...)
	c.Rounds = l.Share()
	o, err := c.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	t.all.Rounds = append(t.all.Rounds, o.Rounds...)
	return arena.Say(judge(&t.all, t.rows)), nil
}

func (t *transactions) sides(ctx context.Context, a *Arena) ([]contest.Side, error) {
	var sides []contest.Side
	for i, s := range []struct {
		name string
		do   workload
	}{{"transaction", unprotected}, {"batch", unprotectedBatch}, {"DoTx", a.doTx}, {"DoBatch", a.doBatch}} {
		if i == len(t.conns) {
			n, err := a.connections(ctx, s.name, inlineCallers, s.do)
			if err != nil {
				return nil, err
			}
			t.conns = append(t.conns, n)
		}
		side, _, err := a.with(ctx, t.conns[i], s.do)
		if err != nil {
			return nil, err
		}
		side.Name = s.name
		sides = append(sides, side)
	}
	return sides, nil
}

// unprotected is BEGIN, the insert, COMMIT: without any idempotency.
func unprotected(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		key := c.Key()
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insertDomain, key, payment.Scope(c.N), 4711)
			return err
		})
	}, nil
}

// doTx is the same with semel.DoTx.
func (a *Arena) doTx(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	engine, err := a.Engine(pool)
	return func(ctx context.Context, c *contest.Caller) error {
		key := c.Key()
		_, _, err := semel.DoTx(ctx, engine, payment.Call(c.N, key), func(ctx context.Context, tx pgx.Tx) (semel.Raw, error) {
			_, err := tx.Exec(ctx, insertDomain, key, payment.Scope(c.N), 4711)
			return payment.Result(), err
		})
		return err
	}, err
}

// unprotectedBatch is the insert alone in a batch, which is a transaction, too.
func unprotectedBatch(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		b := &pgx.Batch{}
		b.Queue(insertDomain, c.Key(), payment.Scope(c.N), 4711)
		return pool.SendBatch(ctx, b).Close()
	}, nil
}

// doBatch is the same with semel.DoBatch.
func (a *Arena) doBatch(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	engine, err := a.Engine(pool)
	return func(ctx context.Context, c *contest.Caller) error {
		key := c.Key()
		_, _, err := semel.DoBatch(ctx, engine, payment.Call(c.N, key), func(context.Context) (semel.Raw, *pgx.Batch, error) {
			b := &pgx.Batch{}
			b.Queue(insertDomain, key, payment.Scope(c.N), 4711)
			return payment.Result(), b, nil
		})
		return err
	}, err
}
