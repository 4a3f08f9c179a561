package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// runDue fails the test unless the worker starts want runs.
func (r *rig) runDue(want int) {
	r.t.Helper()
	check.Equal(r.t, check.Must(r.worker.RunDue(r.t.Context()))(r.t), want, "runs")
}

// TestRunDueRunsWhatIsDue: more tasks than slots, a task that a task enqueues, and not
// one with a delay.
func TestRunDueRunsWhatIsDue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 2}, op)
		handle(r, op, func(_ context.Context, in input) (int, error) {
			if in.N == 4 {
				r.enqueue(op.Call(me, "by a task", input{7}))
			}
			return in.N, nil
		})
		for i, key := range []string{"a", "b", "c", "d", "e"} {
			r.enqueue(op.Call(me, key, input{i}))
		}
		late := op.Call(me, "late", input{5})
		check.Must(semel.Enqueue(t.Context(), r, late, semel.EnqueueOptions{Delay: time.Hour}))(t)
		r.runDue(6)
		r.wantResult(op.Call(me, "by a task", input{7}), 7)
		r.wantState(late, store.Pending)
		r.runDue(0)
		sleep(time.Hour)
		r.runDue(1)
		r.wantResult(late, 5)
	})
}

// TestRunDueRunsAFailedTaskWhenItIsDueAgain: each call runs the task once.
func TestRunDueRunsAFailedTaskWhenItIsDueAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		runs := 0
		handle(r, op, func(context.Context, input) (int, error) {
			if runs++; runs == 1 {
				return 0, errBoom
			}
			return runs, nil
		})
		call := op.Call(me, "k", input{})
		r.enqueue(call)
		r.runDue(1)
		r.wantState(call, store.Pending)
		r.runDue(0)
		sleep(time.Second)
		r.runDue(1)
		r.wantResult(call, 2)
	})
}

// TestRunDueSweeps: the task of a dead worker runs once its lease has expired.
func TestRunDueSweeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		handle(r, op, func(_ context.Context, in input) (int, error) { return in.N, nil })
		call := op.Call(me, "k", input{3})
		r.enqueue(call)
		claimed := check.Must(adapter.Dequeue(t.Context(), r, op, 1))(t) // by a worker that dies
		check.Equal(t, len(claimed), 1, "claimed tasks")
		r.runDue(0)
		sleep(2 * lease)
		r.runDue(1)
		r.wantResult(call, 3)
		claimed[0].Abandon() // Close waits for it
	})
}

// TestRunDueReportsErrors: of the store, and of a context that has ended.
func TestRunDueReportsErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{NoSweeper: true}, op)
		handle(r, op, func(_ context.Context, in input) (int, error) { return in.N, nil })
		call := op.Call(me, "k", input{3})
		r.enqueue(call)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if runs, err := r.worker.RunDue(ended); runs != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("RunDue = %d, %v; want the error of the context", runs, err)
		}
		r.setDown(true)
		runs, err := r.worker.RunDue(t.Context())
		check.Equal(t, runs, 0, "runs")
		check.ErrorIs(t, err, semel.ErrUnavailable, "RunDue")
		r.setDown(false)
		r.runDue(1)
		r.wantResult(call, 3)
	})
}
