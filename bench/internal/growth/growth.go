// Package growth measures speed, space and removal with many records.
package growth

import (
	"context"
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/stat"
)

// callers is the number of concurrent callers.
const callers = 64

// The compared sizes of tables.
const (
	small = 10_000
	large = 1_000_000
	huge  = 10_000_000
)

const (
	largeRandom  = "growth: Do at 64 callers on 10⁶ records, random keys, against 10⁴"
	hugeRandom   = "growth: Do at 64 callers on 10⁷ records, random keys, against 10⁴"
	largeOrdered = "growth: Do at 64 callers on 10⁶ records, keys in the order of time, against 10⁴"
	hugeOrdered  = "growth: Do at 64 callers on 10⁷ records, keys in the order of time, against 10⁴"
)

// Experiments returns the experiments with many records.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		grown(
			sized{goal.AtLeast(largeRandom, "x", 0.85, 1).NoAim(), large, false},
			sized{goal.Shown(largeOrdered, "x"), large, true},
		),
		whole(grown(
			sized{goal.AtLeast(hugeRandom, "x", 0.5, 1).NoAim(), huge, false},
			sized{goal.AtLeast(hugeOrdered, "x", 0.9, 1).NoAim(), huge, true},
		)),
		{
			Name: "stored bytes",
			Rows: []goal.Row{
				goal.AtMost(bytesRow, "x", 1.75, 1.75).NoAim(),
				goal.Shown(bytesAtOnceRow, "x"),
			},
			Run: storedBytes,
		},
		whole(lab.Experiment{
			Name: "removal of old records",
			Rows: []goal.Row{
				goal.AtLeast(removalRow, "x", 10, 10).NoAim(),
				goal.Shown(removalLog, "bytes"),
			},
			Run: removal,
		}),
	}
}

// whole skips an experiment in a quick run.
func whole(e lab.Experiment) lab.Experiment {
	run := e.Run
	e.Run = func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) {
		if l.Quick {
			return nil, errTooLong
		}
		return run(ctx, l)
	}
	return e
}

// sized returns a row about a table of n records.
type sized struct {
	row     goal.Row
	records int
	ordered bool
}

// grown compares large tables with small ones.
func grown(of ...sized) lab.Experiment {
	e := lab.Experiment{Name: fmt.Sprintf("growth to %d records", of[0].records)}
	for _, s := range of {
		e.Rows = append(e.Rows, s.row)
	}
	e.Run = func(ctx context.Context, l *lab.Lab) ([]goal.Finding, error) { return compare(ctx, l, of) }
	return e
}

func compare(ctx context.Context, l *lab.Lab, of []sized) ([]goal.Finding, error) {
	tables := make(map[string]*table)
	c := contest.Contest{Name: of[0].name(), Callers: callers, Rounds: 5}
	if l.Quick {
		of, c.Rounds = of[:1], 0
	}
	records := 0
	for _, s := range of {
		records += s.records
	}
	if err := room(ctx, l, records); err != nil {
		return nil, err
	}
	for _, s := range of {
		for _, records := range []int{small, s.records} {
			t, err := newTable(ctx, l, records, s.ordered)
			if err != nil {
				return nil, err
			}
			tables[t.name] = t
			c.Sides = append(c.Sides, contest.Side{Name: t.name, Do: t.do})
			c.Server = t.server.Usage
		}
	}
	c.Before = func(ctx context.Context, side string) error { return tables[side].shrink(ctx) }
	o, err := c.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	var found []goal.Finding
	for _, s := range of {
		base := tableName(small, s.ordered)
		f := o.Compared(s.row.Name, s.name(), base, contest.Throughput)
		f.Detail += "; " + method
		found = append(found, f)
		series := "random keys"
		if s.ordered {
			series = "keys in the order of time"
		}
		l.Point("growth", series, small, 1)
		l.Point("growth", series, float64(s.records), stat.Median(o.Ratios(s.name(), base, contest.Throughput)))
	}
	return found, nil
}

func (s sized) name() string { return tableName(s.records, s.ordered) }

const method = "the tables were filled with records like those the store writes, with their indexes made anew, vacuumed and analysed; " +
	"the large ones grow by what is measured, the small ones are filled anew before each turn. One checkpoint before the first turn, none between: " +
	"what a page costs the log after a checkpoint is in the first turns"
