package task_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// zombieRun controls one attempt of the test below.
type zombieRun struct {
	begun   chan uint32   // receives the attempt's number
	resume  chan struct{} // the function waits for it, whatever happens to its context
	outcome chan error    // receives the error of InTx
}

// TestZombiesOnPostgres: the first two attempts lose their leases, because
// their processes get no answers from the database. They continue when the
// third attempt runs. Both receive ErrLeaseLost, their transactions cannot
// commit, and the third attempt is unaffected.
func TestZombiesOnPostgres(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)

	// Each process has its own connection to the database, which can be cut.
	// The third process has a long lease, and no sweeper runs before the test
	// sweeps. On a slow machine the second process may lose its lease before
	// its function begins, and claim the task again. So the test uses the
	// attempt numbers that the functions report.
	var zombies []zombieRun
	var cuts []*realtest.Proxy
	var processes []*realProcess[pgx.Tx]
	var first *semel.Operation[input]
	for _, lease := range []time.Duration{300 * time.Millisecond, 300 * time.Millisecond, time.Hour} {
		o := atomicOptions()
		o.Lease = lease
		op := semel.Define("op", o)
		if first == nil {
			first = op
		}
		cut := realtest.NewProxy(t, hostOf(t, url))
		z := zombieRun{make(chan uint32), make(chan struct{}), make(chan error, 1)}
		p := newProcess(t, newPostgresStore(t, ledger.Pool(t, cut.URL(url))), task.Options{Poll: 10 * time.Millisecond, NoSweeper: true}, op)
		check.Require(t, task.Handle(p.worker, op, z.run(t, p), task.HandlerOptions{}), "Handle")
		t.Cleanup(func() { cut.BlackHole(false) }) // otherwise the process could not stop
		cuts, zombies, processes = append(cuts, cut), append(zombies, z), append(processes, p)
	}
	call := first.Call(me, "k", input{})
	if _, err := semel.Enqueue(t.Context(), processes[0], call, semel.EnqueueOptions{}); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	var last uint32
	for i, p := range processes {
		p.start(t)
		n := await(t, zombies[i].begun, "the next attempt")
		if n <= last {
			t.Fatalf("process %d runs attempt %d after attempt %d", i+1, n, last)
		}
		last = n
		if i == 2 {
			break
		}
		cuts[i].BlackHole(true)
		realtest.Poll(t, "its lease to run out", func() bool {
			swept, err := admin.Sweep(t.Context(), processes[2], 10)
			check.NoError(t, err, "Sweep")
			return swept.Requeued == 1
		})
	}
	pool := ledger.Pool(t, url)
	for i := range 2 {
		cuts[i].BlackHole(false)
		close(zombies[i].resume)
		check.ErrorIs(t, await(t, zombies[i].outcome, "the zombie's end"), semel.ErrLeaseLost, "attempt %d", i+1)
		if got := selectEffects(t, pool); len(got) != 0 {
			t.Errorf("attempt %d left the effects %v", i+1, got)
		}
	}
	if r, _, err := admin.Get(t.Context(), processes[2], "op", me, "k"); err != nil || r.State != store.InProgress || r.Attempt != last {
		t.Errorf("the record is %v of attempt %d, %v; want attempt %d to run", r.State, r.Attempt, err, last)
	}
	close(zombies[2].resume)
	check.NoError(t, await(t, zombies[2].outcome, "the third attempt's end"), "attempt 3 got")
	if diff := cmp.Diff(map[string][]uint32{"k": {last}}, selectEffects(t, pool)); diff != "" {
		t.Errorf("the effects differ (-want +got):\n%s", diff)
	}
	for i := range 2 {
		processes[i].seen.await(t, event.Fenced)
		if n := len(processes[i].seen.of(event.LeaseLost)); n == 0 {
			t.Errorf("process %d saw no lease lost", i+1)
		}
	}
}

// run reports its attempt number, waits for resume, and then has its effect.
func (z zombieRun) run(t *testing.T, p *realProcess[pgx.Tx]) func(context.Context, input) (int, error) {
	return func(ctx context.Context, _ input) (int, error) {
		a, _ := semel.AttemptOf(ctx)
		v, err := semel.InTx(ctx, p.Engine, func(ctx context.Context, tx pgx.Tx) (int, error) {
			sendOrEnd(t, z.begun, a.Number())
			block(t, z.resume)
			return 1, insertEffect(ctx, tx, "k", a.Number())
		})
		z.outcome <- err
		return v, err
	}
}

func hostOf(t *testing.T, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	check.Require(t, err, "parse %q", url)
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}
