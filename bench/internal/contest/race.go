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

// Runner is one who does all of the work at a stretch, such as a queue that is
// filled and emptied.
type Runner struct {
	Name string
	// Run does it to the end, and tells how many operations that were.
	Run func(ctx context.Context) (ops int, err error)
	// Server is what works for this runner besides this process; nil: what works
	// for the race.
	Server usage.Server
}

// Race is what runners do one after the other, in rounds like those of a
// [Contest]. It tells throughput and processor time, and no latencies.
type Race struct {
	// Name is shown to those who watch.
	Name    string
	Runners []Runner
	// Server is what works for the runners besides this process; nil: nothing.
	Server usage.Server
	// Before is called before each run, and not measured; nil: nothing is to be
	// done.
	Before func(ctx context.Context, runner string) error
	// Rounds is how many there are; zero: the lab's.
	Rounds int
}

// Run runs the race. A run in which others used the machine is made again, as
// long as the lab has time for that.
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

// turn is a runner's turn in a round, made again until it is quiet. If it never
// is, the quietest counts.
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
	runtime.GC() // what others have left is not this one's
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
