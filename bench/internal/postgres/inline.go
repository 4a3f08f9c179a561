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

// inline compares a transaction with one insert of the domain with the same
// transaction done once.
func inline() lab.Experiment {
	rows := []versus{
		{
			Row:  goal.AtLeast("Postgres, throughput of DoTx at 64 callers, against the same transaction without idempotency", "x", 0.6, 0.8),
			side: "DoTx", by: "transaction",
		},
	}
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		arena, err := NewArena(ctx, l, "inline")
		if err != nil {
			return nil, err
		}
		var sides []contest.Side
		for _, s := range []struct {
			name string
			do   work
		}{{"transaction", unprotected}, {"DoTx", arena.doTx}} {
			side, err := arena.best(ctx, s.name, inlineCallers, s.do)
			if err != nil {
				return nil, err
			}
			sides = append(sides, side)
		}
		o, err := arena.Contest("postgres, transactions", inlineCallers, sides...).Run(ctx, l)
		if err != nil {
			return nil, err
		}
		return arena.Say(judge(o, rows)), nil
	}
	return lab.Experiment{Name: "postgres, transactions", Rows: []goal.Row{rows[0].Row}, Run: run}
}

// unprotected is BEGIN, the insert, COMMIT: what is done where nobody asks what
// happens when it is done again.
func unprotected(pool *pgxpool.Pool) (func(context.Context, *contest.Caller) error, error) {
	return func(ctx context.Context, c *contest.Caller) error {
		key := c.Key()
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insertDomain, key, payment.Scope(c.N), 4711)
			return err
		})
	}, nil
}

// doTx is the same by semel.DoTx.
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
