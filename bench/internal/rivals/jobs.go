package rivals

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// queue takes jobs, each once by its key, and works them off. A job's work is
// nothing.
type queue interface {
	name() string
	// batch is how many jobs a caller adds at a time.
	batch() int
	// usage tells what works for it besides this process.
	usage() usage.Server
	// start empties the queue, and begins to work. done is called for each job
	// that was worked.
	start(ctx context.Context, done func()) error
	// add puts jobs into the queue, one by each key.
	add(ctx context.Context, keys []string) error
	// settle returns once nothing is left to be written of jobs that are done.
	settle(ctx context.Context) error
	// stop ends what start began.
	stop(ctx context.Context) error
}

// jobs are put into each queue by all callers together.
type jobs struct {
	n      int
	rounds int // zero: the lab's

	running queue // that was started
	left    atomic.Int64
	over    chan struct{} // closed when none is left
}

// jobsOf is as many as a queue works in some seconds.
func jobsOf(l *lab.Lab) *jobs {
	if l.Quick {
		return &jobs{n: 3000}
	}
	return &jobs{n: 10_000, rounds: 5}
}

// race has the queues filled and emptied, in turn.
func (j *jobs) race(ctx context.Context, l *lab.Lab, name string, fresh func(context.Context) error, queues ...queue) (*contest.Outcome, error) {
	byName := make(map[string]queue, len(queues))
	r := contest.Race{Name: name, Rounds: j.rounds}
	for _, q := range queues {
		byName[q.name()] = q
		r.Runners = append(r.Runners, contest.Runner{
			Name: q.name(), Server: q.usage(),
			Run: func(ctx context.Context) (int, error) { return j.run(ctx, q) },
		})
	}
	r.Before = func(ctx context.Context, name string) error {
		if err := j.stop(ctx); err != nil {
			return err
		}
		if err := fresh(ctx); err != nil {
			return err
		}
		j.left.Store(int64(j.n))
		j.over = make(chan struct{})
		j.running = byName[name]
		return j.running.start(ctx, j.done)
	}
	o, err := r.Run(ctx, l)
	if stopped := j.stop(ctx); err == nil {
		err = stopped
	}
	return o, err
}

func (j *jobs) stop(ctx context.Context) error {
	if j.running == nil {
		return nil
	}
	q := j.running
	j.running = nil
	return q.stop(ctx)
}

func (j *jobs) done() {
	if j.left.Add(-1) == 0 {
		close(j.over)
	}
}

// run puts the jobs in while they are worked, and waits until all were.
func (j *jobs) run(ctx context.Context, q queue) (int, error) {
	var next atomic.Int64
	_, err := contest.Once(ctx, callers, func(ctx context.Context, c *contest.Caller) (struct{}, error) {
		return struct{}{}, j.fill(ctx, q, c, &next)
	})
	if err != nil {
		return 0, fmt.Errorf("add jobs: %w", err)
	}
	select {
	case <-j.over:
		return j.n, q.settle(ctx)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// fill is what one caller adds.
func (j *jobs) fill(ctx context.Context, q queue, c *contest.Caller, next *atomic.Int64) error {
	for {
		most := j.n + q.batch() - int(next.Add(int64(q.batch())))
		if most <= 0 {
			return nil
		}
		keys := make([]string, min(most, q.batch()))
		for i := range keys {
			keys[i] = c.Key()
		}
		if err := q.add(ctx, keys); err != nil {
			return err
		}
	}
}

// fastest is the place of the queue that was it.
func fastest(o *contest.Outcome, queues []queue) int {
	best := 0
	for i, q := range queues {
		if o.Of(q.name(), contest.Throughput) > o.Of(queues[best].name(), contest.Throughput) {
			best = i
		}
	}
	return best
}
