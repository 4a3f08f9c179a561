// Package program makes the experiments that are asked for, and writes what came
// of them.
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

// Options are what the command line asks for.
type Options struct {
	// Quick: as much as fits in 3 minutes.
	Quick bool
	// Row leaves out the experiments that give no row whose name matches; nil:
	// all are made.
	Row *regexp.Regexp
	// Dir is where the results are written; empty: they are only printed.
	Dir string
	// Profile is where profiles of this process are written; empty: none are made.
	Profile string
}

// Run makes the experiments, one after the other, and says on out how far it is
// and what was found. It returns how many goals were missed, or could not be
// measured.
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

// choose leaves out experiments that give no row that is asked for.
func (o Options) choose(all []lab.Experiment) []lab.Experiment {
	return slices.DeleteFunc(slices.Clone(all), func(e lab.Experiment) bool {
		return o.Row != nil && !slices.ContainsFunc(e.Rows, func(r goal.Row) bool { return o.Row.MatchString(r.Name) })
	})
}

// measure makes the experiments, with a profile if one is asked for.
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
