// Package program runs experiments and writes their results.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/machine"
	"github.com/semelgo/semel/bench/internal/report"
)

// Options are the flags of the command.
type Options struct {
	// Quick limits the run to 3 minutes.
	Quick bool
	// Row selects the experiments that have a row with a matching name. Nil: all.
	Row *regexp.Regexp
	// Dir is the directory of the results. Empty: they are only printed.
	Dir string
	// Profile is the directory of profiles. Empty: none are written.
	Profile string
}

// Run runs the experiments one by one, and reports progress and results to out. It
// returns how many goals were missed or not measured.
func Run(ctx context.Context, o Options, all []lab.Experiment, out io.Writer) (missed int, err error) {
	chosen := o.choose(all)
	if len(chosen) == 0 {
		return 0, fmt.Errorf("no row matches %q", o.Row)
	}
	l, err := lab.New(out, o.Quick)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	m, err := machine.Describe(ctx, l.Dir())
	if err != nil {
		return 0, err
	}
	for _, line := range m.Lines() {
		l.Logf("%s", line)
	}
	results, err := o.measure(ctx, l, chosen)
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		if !r.Met() {
			missed++
		}
	}
	m.Postgres = l.PostgresVersion(ctx)
	fmt.Fprintln(out)
	if err := report.Table(out, results); err != nil {
		return 0, err
	}
	if o.Dir == "" {
		return missed, nil
	}
	return missed, report.Write(o.Dir, l, m, results)
}

// choose selects the experiments that have a selected row.
func (o Options) choose(all []lab.Experiment) []lab.Experiment {
	return slices.DeleteFunc(slices.Clone(all), func(e lab.Experiment) bool {
		return o.Row != nil && !slices.ContainsFunc(e.Rows, func(r goal.Row) bool { return o.Row.MatchString(r.Name) })
	})
}

// measure runs the experiments, with profiles if Profile is set.
func (o Options) measure(ctx context.Context, l *lab.Lab, chosen []lab.Experiment) (results []goal.Result, err error) {
	if o.Profile == "" {
		return measureAll(ctx, l, chosen)
	}
	end, err := profile(o.Profile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return measureAll(ctx, l, chosen)
}
