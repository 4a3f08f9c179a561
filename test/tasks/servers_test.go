//go:build unix

package tasks_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/plainstore/servers"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
)

// recordServer is a server of records without transactions, which remembers each change.
type recordServer struct {
	at servers.Place
	// changes reads all changes of records, in order.
	changes func(t *testing.T) []tokenChange
}

func onRedis(t *testing.T) recordServer {
	t.Helper()
	t.Attr("engine", "redis")
	server := realtest.OwnRedis(t, "auto-aof-rewrite-percentage 0")
	at := servers.Place{Engine: "redis", Address: server.Addr(), Prefix: "t_" + rand.Text()}
	return recordServer{at, func(t *testing.T) []tokenChange { return readAppendOnlyFile(t, server.Client(t), at.Prefix) }}
}

func onEtcd(t *testing.T) recordServer {
	t.Helper()
	t.Attr("engine", "etcd")
	at := servers.Etcd(t)
	return recordServer{at, func(t *testing.T) []tokenChange {
		client := check.Must(realtest.NewEtcdClient(at.Address))(t)
		defer client.Close()
		return readRevisions(t, client, at.Prefix)
	}}
}

// TestTasksOnServersWhileWorkersAreKilledAndStopped: the records are in Redis or etcd, and
// the effects in a database. Each task has one effect for each attempt that had any, and the
// result of the attempt that succeeded. The server's own log of its changes shows only
// transitions of the protocol.
func TestTasksOnServersWhileWorkersAreKilledAndStopped(t *testing.T) {
	t.Parallel()
	o := stressTest{jobs: 200, workers: 2, callers: 1, killAndStop: 3 * time.Second, kill: 500 * time.Millisecond, stops: true}
	if !testing.Short() {
		o = stressTest{
			jobs: rounds(300), workers: 3, callers: 2, killAndStop: time.Duration(rounds(5)) * time.Second,
			kill: 600 * time.Millisecond, stops: true,
		}
	}
	for name, open := range map[string]func(*testing.T) recordServer{"redis": onRedis, "etcd": onEtcd} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harmWorkersOf(t, open(t), o)
		})
	}
}

func harmWorkersOf(t *testing.T, server recordServer, o stressTest) {
	t.Helper()
	at, s := inSQLite(t)
	records := server.at.Store(t)
	e := check.Must(semel.NewRunner(records, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Minute}))(t)
	closeEngine(t, e)
	each := worker(at, "", outside)
	each.Records, each.Slots = server.at, 3 // their effects are serial anyway
	killer := newProcessKiller(t, each, o.workers)
	p := &directCaller{op: outside, note: s.note, do: func(ctx context.Context, c semel.Call, j job) (string, error) {
		result, _, err := semel.Do(ctx, e, c, func(ctx context.Context) (string, error) {
			return j.do(ctx, s.tables, "caller", s.tables.addEffect)
		})
		return result, err
	}}
	// A stopped worker may have SQLite's only write lock, and no caller could write then.
	withoutStops := o
	withoutStops.stops = false
	harmHeldJobs(t, p, killer, groundTruth{s.tables}, withoutStops, func(n int) error {
		_, err := semel.Enqueue(t.Context(), e, p.call(n), semel.EnqueueOptions{})
		return err
	})
	batches := (o.jobs + batch - 1) / batch
	enqueueing := inBackground(t, func(ctx context.Context) error {
		return p.enqueueAll(ctx, e, o.jobs, time.Tick(o.killAndStop*9/10/time.Duration(batches)))
	})
	var asking []*backgroundRun
	for range o.callers {
		asking = append(asking, inBackground(t, p.callJobs))
	}
	raging, calm := context.WithTimeout(t.Context(), o.killAndStop+o.kill/2)
	defer calm()
	killer.killAndStop(raging, time.Tick(o.kill), o.stops)
	enqueueing.wait(t)
	realtest.Poll(t, "the end of all tasks", func() bool { return len(scanAll(t, records, store.Succeeded)) == o.jobs })
	for _, g := range asking {
		g.cancel()
		g.wait(t)
	}
	killer.end()

	w := groundTruth{s.tables}
	writeHistory(t, s.tables, server.changes(t), scanAll(t, records, store.Absent))
	w.want(t, int64(o.jobs), "tasks that succeeded", `select count(*) from history where to_state = 4`)
	w.wantEffects(t, o.jobs)
	w.wantLegalTransitions(t)
	w.none(t, "callers with another result than that of the attempt that succeeded", `select task from told t where not exists
		(select 1 from history h where h.task = t.task and h.to_state = 4 and t.result = h.task || '#' || h.to_attempt)`)
	again := w.count(t, `select count(*) from effects`) - int64(o.jobs)
	t.Logf("%d kills, %d stops; %d requeues, %d takeovers, %d releases; %d fenced zombies, %d callers answered, %d effects happened again",
		killer.kills, killer.stops, w.count(t, requeues), w.count(t, takeovers), w.count(t, releases),
		w.mark(t, string(event.Fenced)), w.count(t, `select count(*) from told`), again)
	wantSome(t, "a kill", killer.kills)
	wantSome(t, "a stop", killer.stops)
	wantSome(t, "a requeue", w.count(t, requeues))
	wantSome(t, "a retry after an error", w.count(t, releases))
	wantSome(t, "an end within its lease", w.count(t, `select count(*) from history where to_state = 4 and early`))
}

// enqueueAll enqueues the jobs below n that are not held, a batch at each tick, and one of each batch twice.
func (p *directCaller) enqueueAll(ctx context.Context, e semel.Runner, n int, ticks <-chan time.Time) error {
	for i := p.held; i < n; i++ {
		for _, want := range []bool{true, false} {
			var added bool
			err := retryWhileBusy(ctx, func() (err error) {
				added, err = semel.Enqueue(ctx, e, p.call(i), semel.EnqueueOptions{})
				if !want && errors.Is(err, semel.ErrInProgress) { // it runs by now
					return nil
				}
				return err
			})
			if added != want || err != nil {
				return fmt.Errorf("enqueue job %d: added %v, want %v: %w", i, added, want, err)
			}
			if i%batch != 0 {
				break
			}
		}
		p.enqueued.Store(int64(i + 1))
		if i%batch == batch-1 {
			<-ticks
		}
	}
	return nil
}

// scanAll returns the records in a state; Absent: all. A busy server may not answer in time.
func scanAll(t *testing.T, s store.Store, state store.State) (all []store.Record) {
	t.Helper()
	for q := (store.Query{State: state, Limit: store.MaxLimit}); ; q.After = all[len(all)-1].ID {
		var page []store.Record
		check.Require(t, retryWhileBusy(t.Context(), func() (err error) {
			page, err = s.Scan(t.Context(), q)
			return err
		}))
		if all = append(all, page...); len(page) < q.Limit {
			return all
		}
	}
}
