package program

import (
	"context"
	"errors"
	"slices"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// measureAll makes one experiment after the other, and among them, again and again,
// those that are spread over the run. One that fails does not keep the others from
// being made, unless it was broken off.
func measureAll(ctx context.Context, l *lab.Lab, chosen []lab.Experiment) ([]goal.Result, error) {
	found := make([][]goal.Result, len(chosen)) // the last of each counts
	visits := visits(chosen, l.Rounds())
	for step, at := range visits {
		e := chosen[at]
		if l.Late() {
			if found[at] == nil {
				found[at] = goal.Results(e.Rows, nil, "a quick run has no time left")
			}
			continue
		}
		l.Logf("experiment %d of %d: %s", step+1, len(visits), e.Name)
		var err error
		if found[at], err = measure(ctx, l, e); err != nil {
			return nil, err
		}
	}
	return slices.Concat(found...), nil
}

// visits are the experiments in the order in which they are made, by their places:
// those that are spread so many times, the first before all others and the last after
// them.
func visits(chosen []lab.Experiment, times int) []int {
	var spread, once, all []int
	for at, e := range chosen {
		if e.Spread {
			spread = append(spread, at)
		} else {
			once = append(once, at)
		}
	}
	made := 0
	for time := range times {
		until := len(once) * time / (times - 1)
		all = append(append(all, once[made:until]...), spread...)
		made = until
	}
	return all
}

// measure makes one experiment. Its error is that it was broken off.
func measure(ctx context.Context, l *lab.Lab, e lab.Experiment) ([]goal.Result, error) {
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
	return goal.Results(e.Rows, found, why), nil
}
