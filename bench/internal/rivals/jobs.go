package rivals

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/usage"
)

// queue accepts jobs, each once per key, and works them off. A job does nothing.
type queue interface {
	name() string
	// batch is the number of jobs that a caller adds at a time.
	batch() int
	// usage reports the processor time of its servers.
	usage() usage.Server
	// start empties the queue and starts its workers. done is called for each
	// finished job.
	start(ctx context.Context, done func()) error
	// add adds a job for each key.
	add(ctx context.Context, keys []string) error
	// settle returns after the completions of all finished jobs are written.
	settle(ctx context.Context) error
	// stop stops the workers.
	stop(ctx context.Context) error
}

// jobs is a number of jobs that all callers together add to each queue.
type jobs struct {
	n      int
	rounds int           // zero: the lab's default
	warm   time.Duration // duration of the warm-up

	running queue // the started queue
	left    atomic.Int64
	over    chan struct{} // closed when no job is left
}

// jobsOf returns as many jobs as a queue works off in some seconds.
func jobsOf(l *lab.Lab) *jobs {
	if l.Quick {
		return &jobs{n: 3000, warm: l.Warm()}
	}
	return &jobs{n: 10_000, rounds: 5, warm: l.Warm()}
}

// race fills and empties the queues, in turn.
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
		j.running = byName[name]
		if err := j.running.start(ctx, j.done); err != nil {
			return err
		}
		if err := j.warmUp(ctx, j.running); err != nil {
			return err
		}
		j.expect(int64(j.n))
		return nil
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

// expect sets the number of jobs to finish.
func (j *jobs) expect(n int64) {
	j.left.Store(n)
	j.over = make(chan struct{})
}

// warmUp adds jobs for a while and waits until they are finished, so that a queue
// has opened its connections before the measurement.
func (j *jobs) warmUp(ctx context.Context, q queue) error {
	if j.warm == 0 {
		return nil
	}
	const many = 1 << 40
	j.expect(many)
	var added atomic.Int64
	end := time.Now().Add(j.warm)
	_, err := contest.Once(ctx, callers, func(ctx context.Context, c *contest.Caller) (struct{}, error) {
		for more := true; more; more = time.Now().Before(end) {
			keys := keysOf(c, q.batch())
			if err := q.add(ctx, keys); err != nil {
				return struct{}{}, err
			}
			added.Add(int64(len(keys)))
		}
		return struct{}{}, nil
	})
	if err != nil {
		return fmt.Errorf("add jobs to warm up: %w", err)
	}
	if j.left.Add(added.Load()-many) == 0 {
		close(j.over)
	}
	return j.wait(ctx, q)
}

// wait waits until all jobs are finished.
func (j *jobs) wait(ctx context.Context, q queue) error {
	select {
	case <-j.over:
		return q.settle(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// run adds the jobs while workers run them, and waits until all are finished.
func (j *jobs) run(ctx context.Context, q queue) (int, error) {
	var next atomic.Int64
	_, err := contest.Once(ctx, callers, func(ctx context.Context, c *contest.Caller) (struct{}, error) {
		return struct{}{}, j.fill(ctx, q, c, &next)
	})
	if err != nil {
		return 0, fmt.Errorf("add jobs: %w", err)
	}
	return j.n, j.wait(ctx, q)
}

// fill adds one caller's jobs.
func (j *jobs) fill(ctx context.Context, q queue, c *contest.Caller, next *atomic.Int64) error {
	for {
		most := j.n + q.batch() - int(next.Add(int64(q.batch())))
		if most <= 0 {
			return nil
		}
		if err := q.add(ctx, keysOf(c, min(most, q.batch()))); err != nil {
			return err
		}
	}
}

func keysOf(c *contest.Caller, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = c.Key()
	}
	return keys
}

// fastest returns the index of the fastest queue.
func fastest(o *contest.Outcome, queues []queue) int {
	best := 0
	for i, q := range queues {
		if o.Of(q.name(), contest.Throughput) > o.Of(queues[best].name(), contest.Throughput) {
			best = i
		}
	}
	return best
}
