package task_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/postgres"
	"github.com/semelgo/semel/store/storetest"
	"github.com/semelgo/semel/task"
)

// TestOneHeartbeatRenewsAllLeases: one Swap per heartbeat renews the leases of
// all running tasks, of all operations, for as long as they run.
func TestOneHeartbeatRenewsAllLeases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		short := leasedOptions(semel.Keyed())
		short.Lease = 6 * time.Second // a heartbeat every two seconds
		quick, slow := semel.Define("quick", short), semel.Define("slow", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, quick, slow)
		lasts := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
				t.Errorf("the context ended: %v", context.Cause(ctx))
			}
			return 0, nil
		}
		handle(r, quick, func(ctx context.Context, _ input) (int, error) { return lasts(ctx) })
		handle(r, slow, func(ctx context.Context, _ input) (int, error) { return lasts(ctx) })
		var calls []semel.Call
		for i := range 3 {
			calls = append(calls, quick.Call(me, fmt.Sprint(i), input{}), slow.Call(me, fmt.Sprint(i), input{}))
		}
		for _, c := range calls {
			r.enqueue(c)
		}
		renewals := r.swaps(store.InProgress, store.InProgress, nil)
		defer r.start()()
		sleep(30 * time.Minute)
		beats := renewals.all()
		if len(beats) < 898 || len(beats) > 900 {
			t.Errorf("%d Swaps renewed leases in half an hour, want one every two seconds", len(beats))
		}
		if last := beats[len(beats)-1]; len(last) != len(calls) {
			t.Errorf("a Swap renewed %d leases, want all %d", len(last), len(calls))
		}
		sleep(31 * time.Minute)
		for _, c := range calls {
			if got := r.wantState(c, store.Succeeded); got.Attempt != 1 {
				t.Errorf("attempt %d succeeded, want the first", got.Attempt)
			}
		}
	})
}

// TestHeartbeatWithoutAnswer: a heartbeat that hangs does not delay the next
// one. A lease lasts three heartbeats, so one of them may hang.
func TestHeartbeatWithoutAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := leasedOptions(semel.Keyed())
		o.Lease = 6 * time.Second
		op := semel.Define("op", o)
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(ctx context.Context, _ input) (int, error) {
			<-time.After(time.Minute)
			return 0, ctx.Err()
		})
		beats := r.swaps(store.InProgress, store.InProgress, func(n int) storetest.Fault { return storetest.Fault{Hang: n%3 == 1} })
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		defer r.start()()
		sleep(90 * time.Second)
		if got := r.wantState(call, store.Succeeded); got.Attempt != 1 || len(beats.all()) < 20 {
			t.Errorf("attempt %d succeeded after %d heartbeats, want the first, with some that hung", got.Attempt, len(beats.all()))
		}
	})
}

// requeue makes the running task Pending, as the sweeper of another process
// does when the store's clock says that the lease has expired.
func (r *rig) requeue(c semel.Call) {
	r.t.Helper()
	current := r.record(c)
	to := current
	to.Token = store.Token{State: store.Pending, Attempt: current.Attempt, Owner: current.Owner + 1}
	to.Due, to.Expire = 0, 0
	change := store.Change{If: current.Token, To: to}
	answers, err := r.mem.Swap(r.t.Context(), []store.Change{change})
	if err != nil || !answers[0].Applied(change) {
		r.t.Fatalf("Swap = %v, %v, want it applied", answers, err)
	}
}

// TestLostLeaseCancelsOnlyItsTask: its context ends with ErrLeaseLost, and
// other tasks continue.
func TestLostLeaseCancelsOnlyItsTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Keyed()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var causes syncList[error]
		handle(r, op, func(ctx context.Context, in input) (int, error) {
			a, _ := semel.AttemptOf(ctx)
			if a.Number() > 1 {
				return 2, nil
			}
			select {
			case <-ctx.Done():
				causes.add(fmt.Errorf("%d: %w", in.N, context.Cause(ctx)))
				return 0, ctx.Err()
			case <-time.After(5 * time.Minute):
				return 1, nil
			}
		})
		lost, kept := op.Call(me, "lost", input{1}), op.Call(me, "kept", input{2})
		r.enqueue(lost)
		r.enqueue(kept)
		defer r.start()()
		sleep(time.Minute)
		r.requeue(lost)
		sleep(time.Minute)
		if got := causes.all(); len(got) != 1 || got[0].Error()[0] != '1' || !errors.Is(got[0], semel.ErrLeaseLost) {
			t.Errorf("ended %v, want the lost one with ErrLeaseLost", got)
		}
		if got := r.wantState(lost, store.Succeeded); got.Attempt != 2 {
			t.Errorf("attempt %d succeeded, want the second", got.Attempt)
		}
		sleep(5 * time.Minute)
		if got := r.wantState(kept, store.Succeeded); got.Attempt != 1 {
			t.Errorf("attempt %d succeeded, want the first", got.Attempt)
		}
	})
}

// TestOutageLongerThanTheLease: running functions are cancelled, because other
// workers may have taken their tasks over. When the store is back, the tasks
// run again.
func TestOutageLongerThanTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var ended syncList[time.Duration]
		begun := time.Now()
		handleTx(r, op, func(ctx context.Context, tx *memory.Tx, _ input) (int, error) {
			if a, _ := semel.AttemptOf(ctx); a.Number() == 1 {
				<-ctx.Done()
				ended.add(time.Since(begun))
				return 0, context.Cause(ctx)
			}
			return 0, tx.Put("effect", nil)
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		defer r.start()()
		sleep(time.Minute)
		r.setDown(true)
		sleep(10 * time.Minute)
		if got := ended.all(); len(got) != 1 || got[0] < time.Minute+lease-10*time.Second || got[0] > time.Minute+lease {
			t.Errorf("the function ended after %v, want at the end of the last lease that was confirmed", got)
		}
		r.setDown(false)
		sleep(2 * time.Minute)
		r.wantState(call, store.Succeeded)
		if _, there := r.mem.Value("effect"); !there {
			t.Error("the effect is missing")
		}
	})
}

// TestZombieChangesNothing: a function that ignores the end of its context
// keeps its slot. Its result is never stored.
func TestZombieChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 1}, op)
		other := newRig(t, r.mem, task.Options{}, op)
		handle(r, op, func(context.Context, input) (string, error) {
			<-time.After(10 * time.Minute) // ignores its context
			return "late result", nil
		})
		handle(other, op, func(context.Context, input) (string, error) { return "alive", nil })
		call, next := op.Call(me, "k", input{}), op.Call(me, "next", input{})
		r.enqueue(call)
		stop := r.start()
		sleep(time.Minute)
		r.requeue(call)
		r.enqueue(next)
		sleep(time.Minute)
		r.wantState(next, store.Pending) // the only slot is taken
		check.Equal(t, len(r.seen.of(event.LeaseLost)), 1, "leases were seen lost")
		defer other.start()()
		sleep(20 * time.Minute)
		stop()
		out := adapter.Outcome{Record: r.wantState(call, store.Succeeded)}
		var got string
		if err := out.Decode(&got); got != "alive" || err != nil {
			t.Errorf("the result is %q, %v; want that of the second attempt", got, err)
		}
		check.Equal(t, len(r.seen.of(event.Fenced)), 1, "zombies were fenced")
	})
}

// TestBrokenTransactionsAreRetriedWithALimit: a timeout of the function, a
// timeout of the database, or a lost session does not lead to endless retries.
func TestBrokenTransactionsAreRetriedWithALimit(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]struct {
		timeout time.Duration
		sql     string
	}{
		"its own timeout":         {100 * time.Millisecond, `SELECT pg_sleep(60)`},
		"a timeout of statements": {0, `SET LOCAL statement_timeout = 50; SELECT pg_sleep(60)`},
		"the end of its session":  {0, `SELECT pg_terminate_backend(pg_backend_pid())`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := atomicOptions()
			o.Retry.MaxErrors, o.Retry.Delay = 2, after(time.Millisecond)
			op := semel.Define("op", o)
			url := realtest.Postgres(t).Database(t)
			engine := newEngine(t, ledger.Postgres(t, url, url, postgres.Options{}).Store, nil, op)
			worker := check.Must(task.New(engine, task.Options{Poll: 10 * time.Millisecond}))(t)
			check.Require(t, task.HandleTx(worker, engine, op, func(ctx context.Context, tx pgx.Tx, _ input) (string, error) {
				_, err := tx.Exec(ctx, run.sql, pgx.QueryExecModeSimpleProtocol)
				return "", err
			}, task.HandlerOptions{Timeout: run.timeout}))
			call := op.Call(me, "k", input{})
			check.Must(semel.Enqueue(t.Context(), engine, call, semel.EnqueueOptions{}))(t)
			r := &rig{t: t, worker: worker}
			defer r.start()()
			realtest.Poll(t, "the task to become a dead letter", func() bool {
				r, _, err := admin.Get(t.Context(), engine, "op", me, "k")
				progress, _ := admin.ProgressOf(r)
				return err == nil && r.State == store.Failed && progress.Errors == 2
			})
		})
	}
}
