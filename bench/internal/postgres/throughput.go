package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// Engine returns an engine on the arena's database. It is closed with the
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

// sides are the sides that claim and complete, in the order of the charts and rows.
func (a *Arena) sides(ctx context.Context, callers int, rows []comparisonRow) ([]contest.Side, error) {
	makers := []func() (contest.Side, error){
		func() (contest.Side, error) { return a.Naive(ctx, callers) },
		func() (contest.Side, error) { return a.Bare(ctx, callers) },
		a.Do,
	}
	if slices.ContainsFunc(rows, func(v comparisonRow) bool { return v.side == "Swap" }) {
		makers = append(makers, func() (contest.Side, error) { return a.Lane(ctx) })
	}
	if slices.ContainsFunc(rows, comparisonRow.isKept) {
		makers = append(makers, func() (contest.Side, error) { return a.Kept(ctx, callers) })
	}
	sides := make([]contest.Side, len(makers))
	for i, side := range makers {
		var err error
		if sides[i], err = side(); err != nil {
			return nil, err
		}
	}
	return sides, nil
}

// comparisonGroup is the rows for a number of callers: one side's measure against
// another's.
type comparisonGroup struct {
	callers int
	rounds  int // zero: the lab's default
	rows    []comparisonRow
}

// comparisonRow is one of these rows.
type comparisonRow struct {
	goal.Row

	side, by string
	measure  contest.Measure // nil: throughput
}

func (v comparisonRow) isKept() bool { return v.by == "kept" }

func (a comparisonGroup) experiment() lab.Experiment {
	rows := make([]goal.Row, len(a.rows))
	for i, v := range a.rows {
		rows[i] = v.Row
	}
	return lab.Experiment{Name: a.name(), Rows: rows, Run: a.run}
}

func (a comparisonGroup) name() string { return fmt.Sprintf("postgres, callers: %d", a.callers) }

// errLeftOut is why a quick run lacks rows.
var errLeftOut = errors.New("a quick run leaves out the table that can be swept and purged")

func (a comparisonGroup) run(ctx context.Context, l *lab.Lab) (_ []goal.Finding, err error) {
	if l.Quick && len(a.rows) == 0 {
		return nil, nil // only the charts need this number of callers
	}
	if l.Quick && a.callers > 1 && slices.ContainsFunc(a.rows, comparisonRow.isKept) {
		a.rows, err = slices.DeleteFunc(slices.Clone(a.rows), comparisonRow.isKept), errLeftOut
	}
	found, failed := a.measured(ctx, l)
	return found, errors.Join(failed, err)
}

func (a comparisonGroup) measured(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
	arena, err := NewArena(ctx, l, "payments")
	if err != nil {
		return nil, err
	}
	sides, err := arena.sides(ctx, a.callers, a.rows)
	if err != nil {
		return nil, err
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

func judge(o *contest.Outcome, rows []comparisonRow) []goal.Finding {
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

// plot adds a side's measures to the charts.
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
