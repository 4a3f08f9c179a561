package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

func TestCancelPending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(context.Context, input) (int, error) {
			t.Error("the function ran, want no run")
			return 0, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call, semel.EnqueueOptions{Delay: time.Hour})
		defer r.start()()
		sleep(time.Minute)
		if _, err := admin.Cancel(t.Context(), r, call.ID(), "not wanted any more"); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		sleep(2 * time.Hour)
		out := adapter.Outcome{Record: r.wantState(call, store.Failed)}
		if f := out.Failure(); f.Code != "cancelled" || f.Message != "not wanted any more" {
			t.Errorf("the failure is %+v, want the reason", f)
		}
	})
}

// TestCancelRunning: the next heartbeat cancels the function's context. In a
// transaction the function then has no effect. Outside, its error decides the
// outcome.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o    semel.OperationOptions[input]
		says error
		want store.State
	}{
		"in a transaction":      {atomicOptions(), errBoom, store.Failed},
		"before a transaction":  {atomicOptions(), errBoom, store.InDoubt},
		"elsewhere":             {leasedOptions(semel.Keyed()), errBoom, store.InDoubt},
		"elsewhere, with proof": {leasedOptions(semel.Keyed()), semel.NotCommitted(errBoom), store.Failed},
		"which succeeds":        {leasedOptions(semel.Keyed()), nil, store.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := semel.Define("op", tt.o)
				r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
				var cancelled syncList[time.Duration]
				begun := time.Now()
				handle(r, op, func(ctx context.Context, _ input) (int, error) {
					<-ctx.Done()
					check.ErrorIs(t, context.Cause(ctx), semel.ErrCancelled, "the context ended with")
					cancelled.add(time.Since(begun))
					if name == "in a transaction" {
						return semel.InTx(ctx, r.Engine, func(context.Context, *memory.Tx) (int, error) { return 1, tt.says })
					}
					return 1, tt.says
				})
				call := op.Call(me, "k", input{})
				r.enqueue(call)
				defer r.start()()
				sleep(time.Minute)
				if _, err := admin.Cancel(t.Context(), r, call.ID(), "not wanted any more"); err != nil {
					t.Errorf("Cancel: %v", err)
				}
				sleep(time.Minute)
				r.wantState(call, tt.want)
				if got := cancelled.all(); len(got) != 1 || got[0] > time.Minute+10*time.Second {
					t.Errorf("cancelled after %v, want with the next heartbeat", got)
				}
			})
		})
	}
}

// TestRedriveDeadLetter: the errors are counted from zero again.
func TestRedriveDeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := atomicOptions()
		o.Retry.MaxErrors = 2
		op := semel.Define("op", o)
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var ran syncList[input]
		handleTx(r, op, func(_ context.Context, _ *memory.Tx, in input) (int, error) {
			ran.add(in)
			if len(ran.all()) < 4 { // becomes a dead letter twice, and succeeds after the second redrive
				return 0, errBoom
			}
			return 5, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		defer r.start()()
		sleep(time.Minute)
		r.history(call, "exhausted")
		redrive := admin.RedriveRequest{ID: call.ID(), Actor: "ann", Reason: "mended"}
		if _, err := admin.Redrive(t.Context(), r, redrive); err != nil {
			t.Errorf("Redrive: %v", err)
		}
		sleep(time.Minute)
		r.wantResult(call, 5)
		if _, err := admin.Redrive(t.Context(), r, redrive); !errors.Is(err, admin.ErrNotFailed) {
			t.Errorf("Redrive of a succeeded task = %v, want ErrNotFailed", err)
		}
	})
}

// TestUnfinishedTasksAreNotPurged: a worker purges records past their
// retention, and no waiting task.
func TestUnfinishedTasksAreNotPurged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Poll: time.Minute}, op)
		handle(r, op, func(context.Context, input) (int, error) { return 0, nil })
		done, waits := op.Call(me, "done", input{}), op.Call(me, "waits", input{})
		r.enqueue(done)
		r.enqueue(waits, semel.EnqueueOptions{Delay: 100 * time.Hour})
		defer r.start()()
		sleep(time.Hour)
		r.wantState(done, store.Succeeded)
		sleep(24 * time.Hour)
		r.wantState(done, store.Absent)
		r.wantState(waits, store.Pending)
		sleep(76 * time.Hour)
		r.wantState(waits, store.Succeeded)
	})
}
