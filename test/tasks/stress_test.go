//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// stressTest runs many jobs by workers that are killed and stopped meanwhile.
type stressTest struct {
	op          *semel.Operation[job]
	jobs        int
	workers     int
	slots       int           // of each worker; zero: as many as it wants
	callers     int           // number of direct callers
	killAndStop time.Duration // how long workers are harmed
	kill        time.Duration // how often one is killed
	stops       bool
}

// stressRun is a run of a stressTest.
type stressRun[Tx any] struct {
	groundTruth

	producer      *producer[Tx]
	alwaysFails   int
	processKiller *processKiller
}

// run enqueues the jobs while workers are harmed, waits until all are done, and
// stops what is left of the workers.
func run[Tx any](t *testing.T, at databaseAddress, s *database[Tx], o stressTest) *stressRun[Tx] {
	t.Helper()
	p := newProducer(s, engineOf(t, s), o.op)
	t.Logf("seed %d", p.seed)
	each := worker(at, "", o.op, alwaysFails)
	each.Slots = o.slots
	r := &stressRun[Tx]{groundTruth: groundTruth{s.tables}, producer: p, alwaysFails: 10, processKiller: newProcessKiller(t, each, o.workers)}
	r.enqueueFailing(t)
	harmHeldJobs(t, &p.directCaller, r.processKiller, r.groundTruth, o, func(n int) error {
		return s.transact(t.Context(), func(ctx context.Context, tx Tx) error { return p.enqueue(ctx, tx, "job", n, 1) })
	})
	begun := time.Now()

	batches := (o.jobs + batch - 1) / batch
	enqueueing := inBackground(t, func(ctx context.Context) error {
		return p.run(ctx, o.jobs, time.Tick(o.killAndStop*9/10/time.Duration(batches)))
	})
	var asking []*backgroundRun
	for range o.callers {
		asking = append(asking, inBackground(t, p.callJobs))
	}
	raging, calm := context.WithTimeout(t.Context(), o.killAndStop+o.kill/2)
	defer calm()
	r.processKiller.killAndStop(raging, time.Tick(o.kill), o.stops)

	enqueueing.wait(t)
	r.await(t, int64(o.jobs+r.alwaysFails), "tasks that are done", `select count(*) from semel_records where state in (4, 5)`)
	took := time.Since(begun)
	for _, g := range asking {
		g.cancel()
		g.wait(t)
	}
	r.processKiller.end()
	t.Logf("%d tasks done in %.1f s, %.0f a second", o.jobs, took.Seconds(), float64(o.jobs)/took.Seconds())
	return r
}

// harmHeldJobs begins a run with events that chance may leave out of it, by jobs that workers
// hold. A worker is killed, and another one requeues its job. If stops is set, a worker is
// stopped until its job is done by another attempt, and then loses the job. If there are direct
// callers, all workers are stopped meanwhile, so that a caller takes the job over.
func harmHeldJobs(t *testing.T, p *directCaller, killer *processKiller, w groundTruth, o stressTest, enqueue func(n int) error) {
	t.Helper()
	if o.stops {
		n, holder := holdJob(t, p, killer, w, enqueue)
		if o.callers > 0 {
			killer.whileStopped(killer.running, func() {
				ctx, cancel := context.WithTimeout(t.Context(), ceiling)
				defer cancel()
				check.Require(t, p.callUntilDone(ctx, n))
				check.Require(t, ctx.Err(), "a caller takes the job over")
			})
		} else {
			killer.whileStopped(killer.running[holder:holder+1], func() { w.awaitEffect(t, p.call(n).Key()) })
		}
		w.awaitLoss(t)
	}
	n, holder := holdJob(t, p, killer, w, enqueue)
	killer.replace(holder)
	w.awaitEffect(t, p.call(n).Key())
}

// holdJob enqueues one more job, and returns its number and that of the worker that holds it.
// On a slow machine, the first attempt may end before its function runs, and a later one is
// not held: then the job is done, and the next one is enqueued.
func holdJob(t *testing.T, p *directCaller, killer *processKiller, w groundTruth, enqueue func(n int) error) (n, holder int) {
	t.Helper()
	for holder = -1; holder < 0; {
		n = p.held
		p.held++
		check.Require(t, enqueue(n))
		realtest.Poll(t, "a worker that holds a job", func() bool {
			task := p.call(n).Key()
			holder = killer.holderOf(task)
			return holder >= 0 || w.count(t, `select count(*) from effects where task = $1`, task) > 0
		})
	}
	return n, holder
}

// enqueueFailing enqueues tasks that end as Failed.
func (r *stressRun[Tx]) enqueueFailing(t *testing.T) {
	t.Helper()
	for i := range r.alwaysFails {
		key := fmt.Sprint("hopeless-", i)
		call := alwaysFails.Call(semel.Shared(), key, job{N: i})
		check.Require(t, retryWhileBusy(t.Context(), func() error {
			_, err := semel.Enqueue(t.Context(), r.producer.engine, call, semel.EnqueueOptions{})
			return err
		}))
	}
}

// check holds what remains against what must be true of all runs.
func (r *stressRun[Tx]) check(t *testing.T, o stressTest) {
	t.Helper()
	r.want(t, int64(o.jobs+r.alwaysFails), "records", `select count(*) from semel_records`)
	r.want(t, int64(o.jobs), "tasks that succeeded", `select count(*) from semel_records where state = 4`)
	r.want(t, int64(r.alwaysFails), "hopeless tasks that failed", `select count(*) from semel_records where state = 5`)
	r.wantEffects(t, o.jobs)
	r.wantLegalTransitions(t)
	wantSome(t, "an enqueueing that was rolled back", int64(r.producer.undone))
	wantSome(t, "a second enqueueing", int64(r.producer.twice))
	wantSome(t, "a kill", r.processKiller.kills)
	wantSome(t, "a retry after an error", r.count(t, releases))
	wantSome(t, "a requeue", r.count(t, requeues))
}

// wantEffects requires that each job had its effect, at most once for each attempt.
func (w groundTruth) wantEffects(t *testing.T, jobs int) {
	t.Helper()
	w.want(t, int64(jobs), "tasks that had an effect", `select count(distinct task) from effects`)
	w.none(t, "effects of what is not to have any", `select task from effects where task not like 'job-%'`)
	w.none(t, "attempts with more than one effect", `select task from effects group by task, attempt having count(*) > 1`)
	w.none(t, "effects of attempts without a claim", `select task from effects e where not exists
		(select 1 from history h where h.task = e.task and h.to_state = 2 and h.to_attempt = e.attempt and h.to_owner = e.owner)`)
}

// checkOnce holds it against what is true where the effect is in the records' own
// database.
func (r *stressRun[Tx]) checkOnce(t *testing.T) {
	t.Helper()
	r.none(t, "tasks with more than one effect", `select task from effects group by task having count(*) > 1`)
	r.none(t, "effects of another attempt than the one that succeeded", `select task from effects e where not exists
		(select 1 from history h where h.task = e.task and h.to_state = 4 and h.to_attempt = e.attempt and h.to_owner = e.owner)`)
	r.none(t, "callers with another result than the stored one", `select task from told t where not exists
		(select 1 from effects e where e.task = t.task and t.result = e.task || '#' || e.attempt)`)
}

// logCounts logs what has happened.
func (r *stressRun[Tx]) logCounts(t *testing.T) {
	t.Helper()
	t.Logf("%d kills, %d stops; %d requeues, %d takeovers, %d releases; %d fenced zombies, %d leases lost, %d callers answered",
		r.processKiller.kills, r.processKiller.stops, r.count(t, requeues), r.count(t, takeovers), r.count(t, releases),
		r.mark(t, string(event.Fenced)), r.mark(t, string(event.LeaseLost)), r.count(t, `select count(*) from told`))
}

// backgroundRun is a function that runs beside a test.
type backgroundRun struct {
	cancel context.CancelFunc
	err    chan error
}

// inBackground runs fn until it returns or is cancelled, at the latest when the test ends.
func inBackground(t *testing.T, fn func(context.Context) error) *backgroundRun {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := &backgroundRun{cancel, make(chan error, 1)}
	go func() {
		defer close(g.err)
		g.err <- fn(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		for range g.err {
		}
	})
	return g
}

// wait waits until it has ended, which must be without an error.
func (g *backgroundRun) wait(t *testing.T) {
	t.Helper()
	check.Require(t, <-g.err)
}
