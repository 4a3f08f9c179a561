package task_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
	"github.com/semelgo/semel/task"
)

// TestStopLetsFunctionsFinish: a stopped worker claims nothing more, and
// running functions finish.
func TestStopLetsFunctionsFinish(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 2, Drain: time.Minute}, op)
		handle(r, op, func(ctx context.Context, _ input) (int, error) {
			<-time.After(50 * time.Second)
			return 0, ctx.Err()
		})
		calls := make([]semel.Call, 3)
		for i := range calls {
			calls[i] = op.Call(me, fmt.Sprint(i), input{})
			r.enqueue(calls[i])
		}
		stop := r.start()
		sleep(time.Second)
		begun := time.Now()
		stop()
		if took := time.Since(begun); took != 49*time.Second {
			t.Errorf("Run ended after %v, want it to wait for its functions and no longer", took)
		}
		done := 0
		for _, c := range calls {
			switch r.record(c).State {
			case store.Succeeded:
				done++
			case store.Pending:
			case store.Absent, store.InProgress, store.InDoubt, store.Failed:
				t.Errorf("the record is %v", r.record(c).State)
			}
		}
		if done != 2 {
			t.Errorf("%d tasks are done, want the two that ran", done)
		}
	})
}

// TestStopWaitsNoLongerThanDrain: then the contexts end, and the tasks are due
// at once for other workers. The interruption counts neither as an error nor as
// a crash.
func TestStopWaitsNoLongerThanDrain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ drain, after time.Duration }{
		"a minute": {time.Minute, time.Minute},
		"default":  {0, 30 * time.Second},
		"no time":  {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := atomicOptions()
				o.Retry.MaxErrors = 1
				op := semel.Define("op", o)
				r := newRig(t, memory.New(memory.Options{}), task.Options{Drain: tt.drain}, op)
				var causes syncList[error]
				handleTx(r, op, func(ctx context.Context, _ *memory.Tx, _ input) (int, error) {
					<-ctx.Done()
					causes.add(context.Cause(ctx))
					return 0, ctx.Err()
				})
				call := op.Call(me, "k", input{})
				r.enqueue(call)
				stop := r.start()
				sleep(5 * time.Minute) // the worker keeps renewing the lease
				begun := time.Now()
				stop()
				check.Equal(t, time.Since(begun), tt.after, "Run ended after")
				if got := causes.all(); len(got) != 1 || !errors.Is(got[0], task.ErrStopped) {
					t.Errorf("ended with %v, want ErrStopped", got)
				}
				if got := r.wantState(call, store.Pending); got.Due > 0 {
					t.Errorf("due in %v, want at once", got.Due)
				}
				if p := r.progress(call); p.Errors != 0 || p.Tries[0].Kind != admin.TryInterrupted {
					t.Errorf("progress %+v, want an interruption that does not count", p)
				}
			})
		})
	}
}

// TestRunWaitsForAFunctionThatIgnoresItsContext, and keeps renewing its lease.
func TestRunWaitsForAFunctionThatIgnoresItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{Drain: time.Second}, op)
		handleTx(r, op, func(_ context.Context, _ *memory.Tx, _ input) (int, error) {
			<-time.After(time.Hour)
			return 1, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		stop := r.start()
		sleep(time.Minute)
		stop()
		if got := r.wantState(call, store.Succeeded); got.Attempt != 1 {
			t.Errorf("attempt %d succeeded, want the first", got.Attempt)
		}
	})
}

// TestTasksClaimedDuringStopAreReleased without a run.
func TestTasksClaimedDuringStopAreReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		requested, answer := make(chan struct{}), make(chan struct{})
		r.faults.Decide(func(c storetest.Call) storetest.Fault {
			if c.Method == "Dequeue" && c.MethodN == 1 {
				close(requested)
				return storetest.Fault{Gate: answer}
			}
			return storetest.Fault{}
		})
		handle(r, op, func(context.Context, input) (int, error) {
			t.Error("the function ran, want no run")
			return 0, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.worker.Run(ctx) }()
		<-requested
		cancel()
		close(answer)
		check.NoError(t, <-ended, "Run")
		if got := r.wantState(call, store.Pending); got.Attempt != 1 || got.Due > 0 {
			t.Errorf("attempt %d, due in %v; want it claimed and released at once", got.Attempt, got.Due)
		}
		if p := r.progress(call); p.Ended != 1 || p.Errors != 0 {
			t.Errorf("progress %+v, want neither an error nor a crash", p)
		}
	})
}

func TestRunTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(context.Context, input) (int, error) { return 0, nil })
		stop := r.start()
		sleep(time.Second)
		check.ErrorIs(t, r.worker.Run(t.Context()), task.ErrRunning, "Run")
		check.ErrorIs(t, task.Handle(r.worker, op, func(context.Context, input) (int, error) { return 0, nil }, task.HandlerOptions{}), task.ErrRunning, "Handle")
		stop()
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		defer r.start()() // a stopped worker may run again
		sleep(time.Minute)
		r.wantState(call, store.Succeeded)
	})
}

func TestRunEndsWithItsEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(context.Context, input) (int, error) {
			<-time.After(time.Minute)
			return 0, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		ended := make(chan error)
		go func() { ended <- r.worker.Run(t.Context()) }()
		sleep(time.Second)
		check.NoError(t, r.Close(t.Context()), "Close")
		check.ErrorIs(t, <-ended, semel.ErrClosed, "Run")
		r.wantState(call, store.Succeeded)
	})
}
