package task_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// crash claims the task of c as a worker whose process dies immediately
// afterwards.
func (r *rig) crash(c semel.Call) {
	r.t.Helper()
	claimed, err := r.mem.Dequeue(r.t.Context(), store.Dequeue{Operation: c.Operation(), Limit: 1, Owner: rand.Uint64() | 1, Lease: lease})
	if err != nil || len(claimed) != 1 {
		r.t.Fatalf("Dequeue = %v, %v, want one", claimed, err)
	}
}

// sweepAfterCrash lets the lease expire and runs a sweep.
func (r *rig) sweepAfterCrash() {
	r.t.Helper()
	sleep(lease)
	if swept, err := admin.Sweep(r.t.Context(), r, 10); swept.Requeued+swept.Doubted != 1 || err != nil {
		r.t.Fatalf("Sweep = %+v, %v, want one requeued", swept, err)
	}
}

// TestWorkerRequeuesTasksOfDeadWorkers: the sweeper requeues a task soon after
// its lease has expired. A worker without a sweeper does not.
func TestWorkerRequeuesTasksOfDeadWorkers(t *testing.T) {
	t.Parallel()
	for name, none := range map[string]bool{"with its sweeper": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := atomicOptions()
				o.Lease = 300 * time.Millisecond // the engine's lease is a hundred times longer
				op := semel.Define("op", o)
				r := newRig(t, memory.New(memory.Options{}), task.Options{NoSweeper: none, Poll: 100 * time.Millisecond}, op)
				handleTx(r, op, func(context.Context, *memory.Tx, input) (int, error) { return 0, nil })
				call := op.Call(me, "k", input{})
				r.enqueue(call)
				r.crash(call)
				defer r.start()()
				sleep(lease - time.Second)
				r.wantState(call, store.InProgress)
				sleep(time.Second + 500*time.Millisecond)
				if none {
					r.wantState(call, store.InProgress)
					return
				}
				if got := r.wantState(call, store.Succeeded); got.Attempt != 2 {
					t.Errorf("attempt %d succeeded, want the second", got.Attempt)
				}
			})
		})
	}
}

// TestCrashesAndErrorsAreCountedSeparately: each has its own limit, and a task
// that was requeued because its worker died does not use up the errors.
func TestCrashesAndErrorsAreCountedSeparately(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := atomicOptions()
		o.Retry = &semel.Retry{MaxErrors: 3, MaxCrashes: 3, Delay: after(time.Hour)}
		op := semel.Define("op", o)
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 1}, op)
		fails := true
		handleTx(r, op, func(context.Context, *memory.Tx, input) (int, error) {
			if fails {
				return 0, errBoom
			}
			return 0, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		for range 2 {
			r.crash(call)
			r.sweepAfterCrash()
			stop := r.start()
			sleep(time.Second)
			stop()
			sleep(time.Hour)
		}
		p := r.progress(call)
		if p.Errors != 2 || p.Ended != 2 || len(p.Tries) != 4 {
			t.Errorf("progress %+v, want two errors and two crashes", p)
		}
		fails = false
		defer r.start()()
		sleep(time.Minute)
		if got := r.wantState(call, store.Succeeded); got.Attempt != 5 {
			t.Errorf("attempt %d succeeded, want the fifth", got.Attempt)
		}
	})
}

// TestTooManyCrashesMakeADeadLetter, without another run. Under a policy whose
// runs may have had an effect the task becomes InDoubt.
func TestTooManyCrashesMakeADeadLetter(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    semel.OperationOptions[input]
		want store.State
	}{
		"atomic":        {atomicOptions(), store.Failed},
		"keyed":         {leasedOptions(semel.Keyed()), store.InDoubt},
		"at least once": {leasedOptions(semel.AtLeastOnce()), store.InDoubt},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := semel.Define("op", tt.o)
				r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
				handle(r, op, func(context.Context, input) (int, error) {
					t.Error("the function ran, want no run")
					return 0, nil
				})
				call := op.Call(me, "k", input{})
				r.enqueue(call)
				for range 3 {
					r.crash(call)
					r.sweepAfterCrash()
				}
				defer r.start()()
				sleep(time.Minute)
				r.wantState(call, tt.want)
				var p admin.Progress
				if tt.want == store.Failed {
					p = r.history(call, "exhausted")
				} else {
					p = r.progress(call)
				}
				crashes := 0
				for _, try := range p.Tries {
					if try.Kind == admin.TryCrash {
						crashes++
					}
				}
				if crashes != 3 || p.Errors != 0 {
					t.Errorf("the history is %+v, want three crashes", p)
				}
			})
		})
	}
}

// TestFencedLooksUpBeforeAnotherRun: the fence is raised to the number of the
// new attempt, and the result that the look-up finds is stored.
func TestFencedLooksUpBeforeAnotherRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var raised syncList[uint32]
		raise := func(_ context.Context, _ semel.Scope, _ string, attempt uint32) error {
			raised.add(attempt)
			return nil
		}
		look := func(context.Context, semel.Scope, string) (any, bool, error) { return 7, true, nil }
		op := semel.Define("op", leasedOptions(semel.Fenced(raise, look)))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(context.Context, input) (int, error) {
			t.Error("the function ran, want no run")
			return 0, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		r.crash(call)
		r.sweepAfterCrash()
		defer r.start()()
		sleep(time.Minute)
		r.wantResult(call, 7)
		if got := raised.all(); len(got) != 1 || got[0] != 2 {
			t.Errorf("the fence was raised to %v, want once to 2", got)
		}
	})
}

// TestSweeperIgnoresForeignOperations: a worker's sweeper does not touch
// records of operations that the worker does not have.
func TestSweeperIgnoresForeignOperations(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op, theirs := semel.Define("op", atomicOptions()), semel.Define("theirs", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handleTx(r, op, func(context.Context, *memory.Tx, input) (int, error) { return 0, nil })
		call := theirs.Call(me, "k", input{})
		r.enqueue(call)
		r.crash(call)
		before := r.record(call)
		defer r.start()()
		sleep(10 * time.Minute)
		if got := r.record(call); got.Token != before.Token {
			t.Errorf("the record has the token %v, want the unchanged %v", got.Token, before.Token)
		}
	})
}
