package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/store/postgres"
)

const overSQLCallers = 64

// overSQL compares an engine over database/sql with one over a pool of pgx, each with
// the same number of connections.
func overSQL() lab.Experiment {
	const pgxToo = " at 64 callers over database/sql, against pgx"
	rows := []comparisonRow{
		{Row: goal.AtLeast("Postgres, throughput of Do"+pgxToo, "x", 0.8, 0.95), side: "Do, sql", by: "Do, pgx"},
		{Row: goal.AtLeast("Postgres, throughput of DoTx"+pgxToo, "x", 0.8, 0.95), side: "DoTx, sql", by: "DoTx, pgx"},
	}
	return lab.Experiment{
		Name: "postgres, database/sql", Rows: []goal.Row{rows[0].Row, rows[1].Row},
		Run: func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
			arena, err := NewArena(ctx, l, "database_sql")
			if err != nil {
				return nil, err
			}
			sides, err := arena.overBoth()
			if err != nil {
				return nil, err
			}
			o, err := arena.Contest("postgres, database/sql", overSQLCallers, sides...).Run(ctx, l)
			if err != nil {
				return nil, err
			}
			return judge(o, rows), nil
		},
	}
}

// overBoth returns Do and DoTx over pgx, and over database/sql.
func (a *Arena) overBoth() ([]contest.Side, error) {
	byPgx, err := a.Engine(a.own)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*a.own.Config().ConnConfig)
	db.SetMaxOpenConns(ourConns)
	db.SetMaxIdleConns(ourConns)
	a.lab.Closing(db.Close)
	s, err := postgres.NewSQL(db, postgres.Options{})
	if err != nil {
		return nil, err
	}
	bySQL, err := semel.New(s, semel.Options{})
	if err != nil {
		return nil, err
	}
	a.lab.Closing(func() error { return bySQL.Close(context.Background()) })
	return []contest.Side{
		{Name: "Do, pgx", Do: payment.Do(byPgx)},
		{Name: "Do, sql", Do: payment.Do(bySQL)},
		{Name: "DoTx, pgx", Do: doTxWith(byPgx, func(ctx context.Context, tx pgx.Tx, args ...any) error {
			_, err := tx.Exec(ctx, insertDomain, args...)
			return err
		})},
		{Name: "DoTx, sql", Do: doTxWith(bySQL, func(ctx context.Context, tx *sql.Tx, args ...any) error {
			_, err := tx.ExecContext(ctx, insertDomain, args...)
			return err
		})},
	}, nil
}

// doTxWith is one insert with semel.DoTx.
func doTxWith[Tx any](e *semel.Engine[Tx], insert func(ctx context.Context, tx Tx, args ...any) error) func(context.Context, *contest.Caller) error {
	return func(ctx context.Context, c *contest.Caller) error {
		key := c.Key()
		_, _, err := semel.DoTx(ctx, e, payment.Call(c.N, key), func(ctx context.Context, tx Tx) (semel.Raw, error) {
			return payment.Result(), insert(ctx, tx, key, payment.Scope(c.N), 4711)
		})
		return err
	}
}
