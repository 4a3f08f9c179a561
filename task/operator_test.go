package task_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// TestCancelRunning: the next heartbeat cancels the function's context, and its transaction
// then has no effect. The root package tests the other ends of a cancelled attempt.
func TestCancelRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", atomicOptions())
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var cancelled syncList[time.Duration]
		begun := time.Now()
		handleTx(r, op, func(ctx context.Context, _ *memory.Tx, _ input) (int, error) {
			<-ctx.Done()
			check.ErrorIs(t, context.Cause(ctx), semel.ErrCancelled, "the context ended with")
			cancelled.add(time.Since(begun))
			return 1, errBoom
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		defer r.start()()
		sleep(time.Minute)
		check.Must(admin.Cancel(t.Context(), r, call.ID(), "not wanted any more"))(t)
		sleep(time.Minute)
		r.wantState(call, store.Failed)
		if got := cancelled.all(); len(got) != 1 || got[0] > time.Minute+10*time.Second {
			t.Errorf("cancelled after %v, want with the next heartbeat", got)
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
