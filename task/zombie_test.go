package task_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/task"
)

// zombieRun is one attempt of the test below.
type zombieRun struct {
	begun   chan uint32   // its number
	resume  chan struct{} // it stands still until then, whatever its context says
	outcome chan error    // what InTx told it
}

// TestZombiesOnPostgres: the first two attempts lose their leases, because their
// processes hear nothing of the database, and go on when the third one runs. Both
// are told so, their transactions cannot commit, and the third is untouched.
func TestZombiesOnPostgres(t *testing.T) {
	t.Parallel()
	url := newPostgres(t)

	// Each process has its own way to the database, which can be cut. The third has
	// all the time there is, and nobody sweeps before the test does. On a slow machine
	// the second process may lose its lease before its function begins, and take the
	// task again: the numbers of attempts are those that were told.
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
		p := newProcess(t, newPostgresStore(t, connect(t, cut.URL(url))), task.Options{Poll: 10 * time.Millisecond, NoSweeper: true}, op)
		if err := task.Handle(p.worker, op, z.run(t, p), task.HandlerOptions{}); err != nil {
			t.Fatalf("Handle: %v", err)
		}
		t.Cleanup(func() { cut.BlackHole(false) }) // the process could not stop otherwise
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
		until(t, "its lease to run out", func() bool {
			swept, err := processes[2].Sweep(t.Context(), 10)
			if err != nil {
				t.Errorf("Sweep: %v", err)
			}
			return swept.Requeued == 1
		})
	}
	pool := connect(t, url)
	for i := range 2 {
		cuts[i].BlackHole(false)
		close(zombies[i].resume)
		if err := await(t, zombies[i].outcome, "the zombie's end"); !errors.Is(err, semel.ErrLeaseLost) {
			t.Errorf("attempt %d was told %v, want ErrLeaseLost", i+1, err)
		}
		if got := selectEffects(t, pool); len(got) != 0 {
			t.Errorf("attempt %d left the effects %v", i+1, got)
		}
	}
	if r, _, err := processes[2].Get(t.Context(), "op", me, "k"); err != nil || r.State != store.InProgress || r.Attempt != last {
		t.Errorf("the record stands as %v of attempt %d, %v; want attempt %d to run", r.State, r.Attempt, err, last)
	}
	close(zombies[2].resume)
	if err := await(t, zombies[2].outcome, "the third attempt's end"); err != nil {
		t.Errorf("attempt 3 was told %v", err)
	}
	if diff := cmp.Diff(map[string][]uint32{"k": {last}}, selectEffects(t, pool)); diff != "" {
		t.Errorf("the effects differ (-want +got):\n%s", diff)
	}
	until(t, "the zombies to be seen", func() bool {
		return len(processes[0].seen.of(semel.EventFenced)) > 0 && len(processes[1].seen.of(semel.EventFenced)) > 0
	})
	for i := range 2 {
		if n := len(processes[i].seen.of(semel.EventLeaseLost)); n == 0 {
			t.Errorf("process %d saw no lease lost", i+1)
		}
	}
}

// run tells that it has begun, and has its effect when it is let go on.
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
	if err != nil {
		t.Fatalf("parse %q: %v", url, err)
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}
