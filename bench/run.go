package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/report"
)

// run makes the experiments and writes what came of them. It returns how many
// goals were missed.
func run(ctx context.Context, o options, all []lab.Experiment, out io.Writer) (missed int, err error) {
	chosen := o.choose(all)
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no row matches %q", o.row)
	}
	l, err := lab.New(out, o.quick)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	results, err := measure(ctx, l, chosen)
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		if !r.Met() {
			missed++
		}
	}
	return missed, report.Table(out, results)
}

// choose leaves out experiments that give no row that is asked for.
func (o options) choose(all []lab.Experiment) []lab.Experiment {
	return slices.DeleteFunc(slices.Clone(all), func(e lab.Experiment) bool {
		return o.row != nil && !slices.ContainsFunc(e.Rows, func(r goal.Row) bool { return o.row.MatchString(r.Name) })
	})
}

// measure makes one experiment after the other. One that fails does not keep the
// others from being made, unless it was broken off.
func measure(ctx context.Context, l *lab.Lab, chosen []lab.Experiment) ([]goal.Result, error) {
	var results []goal.Result
	for i, e := range chosen {
		l.Logf("experiment %d of %d: %s", i+1, len(chosen), e.Name)
		found, err := e.Run(ctx, l)
		err = errors.Join(err, l.Leave())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		why := "nothing was found"
		if err != nil {
			why = err.Error()
			l.Logf("%s: %v", e.Name, err)
		}
		results = append(results, goal.Results(e.Rows, found, why)...)
	}
	return results, nil
}
