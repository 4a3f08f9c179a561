package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/payment"
	"github.com/semelgo/semel/store/postgres"
)

// Do is the side of semel.Do, with Semel's pool.
func (a *Arena) Do() (contest.Side, error) {
	engine, err := a.Engine(a.own)
	if err != nil {
		return contest.Side{}, err
	}
	a.said = append(a.said, fmt.Sprintf("Do has %d", ourConns))
	return contest.Side{Name: "Do", Do: payment.Do(engine)}, nil
}

// Engine returns one on the arena's database, which is closed with the
// experiment.
func (a *Arena) Engine(pool *pgxpool.Pool) (*semel.Engine[pgx.Tx], error) {
	s, err := postgres.New(pool, postgres.Options{})
	if err != nil {
		return nil, err
	}
	engine, err := semel.New(s, semel.Options{})
	if err != nil {
		return nil, err
	}
	a.lab.Closing(func() error { return engine.Close(context.Background()) })
	return engine, nil
}

// sides are those that claim and complete, in the order they are shown.
func (a *Arena) sides(ctx context.Context, callers int) ([]contest.Side, error) {
	naive, err := a.Naive(ctx, callers)
	if err != nil {
		return nil, err
	}
	bare, err := a.Bare(ctx, callers)
	if err != nil {
		return nil, err
	}
	do, err := a.Do()
	if err != nil {
		return nil, err
	}
	return []contest.Side{naive, bare, do}, nil
}

// against are the rows of a number of callers: one side's measure against that of
// another.
type against struct {
	callers int
	rounds  int  // zero: the lab's
	lane    bool // the store by itself takes part, too
	rows    []versus
}

// versus is one row of them.
type versus struct {
	goal.Row

	side, by string
	measure  contest.Measure // nil: throughput
}

func (a against) experiment() lab.Experiment {
	rows := make([]goal.Row, len(a.rows))
	for i, v := range a.rows {
		rows[i] = v.Row
	}
	return lab.Experiment{Name: a.name(), Rows: rows, Run: a.run}
}

func (a against) name() string { return fmt.Sprintf("postgres, callers: %d", a.callers) }

func (a against) run(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	if l.Quick && len(a.rows) == 0 {
		return nil, nil // it would be for the charts alone
	}
	arena, err := NewArena(ctx, l, "payments")
	if err != nil {
		return nil, err
	}
	sides, err := arena.sides(ctx, a.callers)
	if err != nil {
		return nil, err
	}
	if a.lane {
		swap, err := arena.Lane(ctx)
		if err != nil {
			return nil, err
		}
		sides = append(sides, swap)
	}
	c := arena.Contest(a.name(), a.callers, sides...)
	c.Rounds = a.rounds
	o, err := c.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	for _, side := range sides {
		plot(l, o, side.Name)
	}
	return arena.Say(judge(o, a.rows)), nil
}

func judge(o *contest.Outcome, rows []versus) []goal.Finding {
	found := make([]goal.Finding, len(rows))
	for i, v := range rows {
		if v.measure == nil {
			found[i] = o.Faster(v.Row, v.side, v.by)
		} else {
			found[i] = o.Compared(v.Name, v.side, v.by, v.measure)
		}
	}
	return found
}

// plot adds what a side has shown to the charts.
func plot(l *lab.Lab, o *contest.Outcome, side string) {
	name, drawn := map[string]string{
		"Do": "semel.Do", "naive": "two plain statements", "bare": "one bare insert",
	}[side]
	if !drawn {
		return
	}
	x := float64(o.Callers)
	l.Point("throughput", name, x, o.Of(side, contest.Throughput))
	l.Point("p99", name, x, o.Of(side, contest.P99)/1000)
	l.Point("cpu", name, x, o.Of(side, contest.CPU))
}
