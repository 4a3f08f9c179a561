package program

import (
	"context"
	"errors"
	"slices"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// measureAll runs the experiments one by one, and between them the experiments that
// are spread over the run. An error of an experiment does not keep the others from
// running, unless ctx has ended.
func measureAll(ctx context.Context, l *lab.Lab, chosen []lab.Experiment) ([]goal.Result, error) {
	found := make([][]goal.Result, len(chosen)) // the last result of each counts
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

// visits lists the experiments, by index, in the order in which they run. A spread
// experiment is listed the given number of times, first before all others, and last
// after them.
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

// measure runs one experiment. Its error is that of ctx.
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
