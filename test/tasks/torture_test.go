//go:build unix

package tasks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelgo/semel"
)

// torture is a run of many jobs by workers that are killed and stopped meanwhile.
type torture struct {
	op      *semel.Operation[job]
	jobs    int
	workers int
	slots   int           // of each worker; zero: as many as it wants
	callers int           // number of direct callers
	rage    time.Duration // how long workers are harmed
	kill    time.Duration // how often one is killed
	stops   bool
}

// tortured is what remains of it.
type tortured[Tx any] struct {
	truth

	producer *producer[Tx]
	hopeless int
	nemesis  *nemesis
}

// run enqueues the jobs while workers are harmed, waits until all are done, and
// stops what is left of the workers.
func run[Tx any](t *testing.T, at place, s *site[Tx], o torture) *tortured[Tx] {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &producer[Tx]{site: s, engine: engineOf(t, s), op: o.op, seed: seed}
	each := worker(at, "", o.op, hopeless)
	each.Slots = o.slots
	r := &tortured[Tx]{truth: truth{s.tables}, producer: p, hopeless: 10, nemesis: newNemesis(t, each, o.workers)}
	r.enqueueHopeless(t)
	begun := time.Now()

	batches := (o.jobs + batch - 1) / batch
	enqueueing := goes(t, func(ctx context.Context) error {
		return p.run(ctx, o.jobs, time.Tick(o.rage*9/10/time.Duration(batches)))
	})
	var asking []*going
	for range o.callers {
		asking = append(asking, goes(t, p.ask))
	}
	raging, calm := context.WithTimeout(t.Context(), o.rage+o.kill/2)
	defer calm()
	r.nemesis.rage(raging, time.Tick(o.kill), o.stops)

	enqueueing.wait(t)
	r.await(t, int64(o.jobs+r.hopeless), "tasks that are done", `select count(*) from semel_records where state in (4, 5)`)
	took := time.Since(begun)
	for _, g := range asking {
		g.cancel()
		g.wait(t)
	}
	r.nemesis.end()
	t.Logf("%d tasks done in %.1f s, %.0f a second", o.jobs, took.Seconds(), float64(o.jobs)/took.Seconds())
	return r
}

// enqueueHopeless enqueues tasks that end as Failed.
func (r *tortured[Tx]) enqueueHopeless(t *testing.T) {
	t.Helper()
	for i := range r.hopeless {
		key := fmt.Sprint("hopeless-", i)
		call := hopeless.Call(semel.Shared(), key, job{N: i})
		err := insist(t.Context(), func() error {
			_, err := semel.Enqueue(t.Context(), r.producer.engine, call, semel.EnqueueOptions{})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// check holds what remains against what must be true of all runs.
func (r *tortured[Tx]) check(t *testing.T, o torture) {
	t.Helper()
	r.want(t, int64(o.jobs+r.hopeless), "records", `select count(*) from semel_records`)
	r.want(t, int64(o.jobs), "tasks that succeeded", `select count(*) from semel_records where state = 4`)
	r.want(t, int64(r.hopeless), "hopeless tasks that failed", `select count(*) from semel_records where state = 5`)
	r.want(t, int64(o.jobs), "tasks that had an effect", `select count(distinct key) from effects`)
	r.none(t, "effects of what is not to have any", `select key from effects where key not like 'job-%'`)
	r.none(t, "attempts with more than one effect", `select key from effects group by key, attempt having count(*) > 1`)
	r.none(t, "effects of attempts that nobody has claimed", `select key from effects e where not exists
		(select 1 from history h where h.key = e.key and h.to_state = 2 and h.to_attempt = e.attempt and h.to_owner = e.owner)`)
	r.lawful(t)
	seen(t, "an enqueueing that was rolled back", int64(r.producer.undone))
	seen(t, "a second enqueueing", int64(r.producer.twice))
	seen(t, "a kill", r.nemesis.kills)
	seen(t, "a retry after an error", r.count(t, releases))
	seen(t, "a requeue", r.count(t, requeues))
}

// checkOnce holds it against what is true where the effect is in the records' own
// database.
func (r *tortured[Tx]) checkOnce(t *testing.T) {
	t.Helper()
	r.none(t, "tasks with more than one effect", `select key from effects group by key having count(*) > 1`)
	r.none(t, "effects of another attempt than the one that succeeded", `select key from effects e where not exists
		(select 1 from history h where h.key = e.key and h.to_state = 4 and h.to_attempt = e.attempt and h.to_owner = e.owner)`)
	r.none(t, "callers who were told another result", `select key from told t where not exists
		(select 1 from effects e where e.key = t.key and t.result = e.key || '#' || e.attempt)`)
}

// tell says what has happened.
func (r *tortured[Tx]) tell(t *testing.T) {
	t.Helper()
	t.Logf("%d kills, %d stops; %d requeues, %d takeovers, %d releases; %d fenced zombies, %d leases lost, %d callers answered",
		r.nemesis.kills, r.nemesis.stops, r.count(t, requeues), r.count(t, takeovers), r.count(t, releases),
		r.mark(t, string(semel.EventFenced)), r.mark(t, string(semel.EventLeaseLost)), r.count(t, `select count(*) from told`))
}

// going is what runs beside a test.
type going struct {
	cancel context.CancelFunc
	err    chan error
}

// goes runs fn until it has ended or is cancelled, at the latest when the test ends.
func goes(t *testing.T, fn func(context.Context) error) *going {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := &going{cancel, make(chan error, 1)}
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
func (g *going) wait(t *testing.T) {
	t.Helper()
	if err := <-g.err; err != nil {
		t.Fatal(err)
	}
}
