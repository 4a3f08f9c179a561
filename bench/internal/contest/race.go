package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// Runner does all of its work in one run, for example a queue that is filled and
// emptied.
type Runner struct {
	Name string
	// Run does the work, and returns the number of operations.
	Run func(ctx context.Context) (ops int, err error)
	// Server reports the processor time of this runner's servers. Nil: the race's
	// Server is used.
	Server usage.Server
}

// Race compares runners, in rounds like those of a [Contest]. It measures
// throughput and processor time, and no latencies.
type Race struct {
	// Name is shown while the race runs.
	Name    string
	Runners []Runner
	// Server reports the processor time of the servers. Nil: there are none.
	Server usage.Server
	// Before is called before each run and is not measured. Nil: nothing is called.
	Before func(ctx context.Context, runner string) error
	// Rounds is the number of rounds. Zero: the lab's default.
	Rounds int
}

// Run runs the race. If other processes used the machine during a run, the run is
// repeated, as long as the lab has time for it.
func (r *Race) Run(ctx context.Context, l *lab.Lab) (*Outcome, error) {
	rounds := cmp.Or(r.Rounds, l.Rounds())
	o := &Outcome{}
	for n := range rounds {
		round := make(map[string]Sample, len(r.Runners))
		var said []string
		for _, i := range rand.Perm(len(r.Runners)) {
			runner := r.Runners[i]
			s, err := r.turn(ctx, l, runner)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", r.Name, runner.Name, err)
			}
			round[runner.Name] = s
			said = append(said, fmt.Sprintf("%s %s/s", runner.Name, thousands(Throughput(s))))
		}
		o.Rounds = append(o.Rounds, round)
		l.Logf("%s, round %d of %d: %s", r.Name, n+1, rounds, strings.Join(said, ", "))
	}
	return o, nil
}

// turn runs a runner in a round, again until it is quiet. If it never is, the
// quietest run counts.
func (r *Race) turn(ctx context.Context, l *lab.Lab, runner Runner) (Sample, error) {
	var best Sample
	for try := 1; ; try++ {
		s, err := r.once(ctx, runner)
		if err != nil {
			return Sample{}, err
		}
		if try == 1 || s.Foreign < best.Foreign {
			best = s
		}
		best.Tries = try
		if best.Quiet() || !l.Again(ctx) {
			return best, nil
		}
	}
}

func (r *Race) once(ctx context.Context, runner Runner) (Sample, error) {
	if r.Before != nil {
		if err := r.Before(ctx, runner.Name); err != nil {
			return Sample{}, err
		}
	}
	server := usage.None
	for _, s := range []usage.Server{r.Server, runner.Server} {
		if s != nil {
			server = s
		}
	}
	runtime.GC() // garbage of earlier runs must not count here
	before, err := usage.Begin(server)
	if err != nil {
		return Sample{}, err
	}
	ops, err := runner.Run(ctx)
	if err != nil {
		return Sample{}, err
	}
	span, err := before.End()
	if err == nil && ops == 0 {
		err = errors.New("nothing was done")
	}
	return Sample{Span: span, Ops: ops, Tries: 1}, err
}
