// Package sqlite measures Semel on SQLite against hand-written SQL, with the same
// driver, the same settings (journal mode WAL, synchronous FULL), and files on the
// same disk.
package sqlite

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// Experiments returns the experiments on SQLite.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		against(
			64,
			goal.AtLeast("SQLite, throughput of Do at 64 callers, against two plain statements", "x", 3, 4),
			goal.AtLeast("SQLite, throughput of Do at 64 callers, against one bare insert", "x", 1.8, 2.5),
		),
		against(
			1,
			goal.Shown("SQLite, throughput of Do at 1 caller, against two plain statements", "x"),
			goal.Shown("SQLite, throughput of Do at 1 caller, against one bare insert", "x"),
		),
	}
}

// against compares Do with two statements, and with one.
func against(callers int, naive, bare goal.Row) lab.Experiment {
	name := fmt.Sprintf("sqlite, callers: %d", callers)
	run := func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		a := &arena{lab: l, callers: callers}
		sides, err := a.sides(ctx)
		if err != nil {
			return nil, err
		}
		c := contest.Contest{Name: name, Callers: callers, Sides: sides, Before: a.fresh}
		o, err := c.Run(ctx, l)
		if err != nil {
			return nil, err
		}
		return a.say([]goal.Finding{o.Faster(naive, "Do", "naive"), o.Faster(bare, "Do", "bare")}), nil
	}
	return lab.Experiment{Name: name, Rows: []goal.Row{naive, bare}, Run: run}
}
