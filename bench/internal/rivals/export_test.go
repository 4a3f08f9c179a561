package rivals

import (
	"context"
	"time"

	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// Kept is a queue that keeps what it is given.
type Kept struct {
	Batch  int
	Add    func(keys []string) error
	Starts int
	Stops  int

	done func()
}

func (*Kept) name() string        { return "kept" }
func (q *Kept) batch() int        { return q.Batch }
func (*Kept) usage() usage.Server { return usage.None }

func (q *Kept) start(_ context.Context, done func()) error {
	q.Starts, q.done = q.Starts+1, done
	return nil
}

func (q *Kept) add(_ context.Context, keys []string) error {
	for range keys {
		q.done()
	}
	return q.Add(keys)
}

func (*Kept) settle(context.Context) error { return nil }
func (q *Kept) stop(context.Context) error { q.Stops++; return nil }

// Race has q filled and emptied once, with n jobs, after so long of warming up, and
// tells how many operations that were.
func Race(ctx context.Context, l *lab.Lab, q *Kept, n int, warm time.Duration) (int, error) {
	j := jobs{n: n, rounds: 1, warm: warm}
	o, err := j.race(ctx, l, "kept", func(context.Context) error { return nil }, q)
	if err != nil {
		return 0, err
	}
	return o.Rounds[0][q.name()].Ops, nil
}
