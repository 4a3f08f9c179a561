package task_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

func TestRunsEnqueuedTasks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var runs syncList[input]
		handle(r, op, func(_ context.Context, in input) (string, error) {
			runs.add(in)
			return "done", nil
		})
		call := op.Call(me, "k", input{7})
		r.enqueue(call)
		defer r.start()()
		sleep(time.Minute)
		if got := runs.all(); len(got) != 1 || got[0].N != 7 {
			t.Errorf("ran with %v, want once, with 7", got)
		}
		r.wantState(call, store.Succeeded)
		v, replayed, err := semel.Do(t.Context(), r, call, func(context.Context) (string, error) { return "", errBoom })
		if v != "done" || !replayed || err != nil {
			t.Errorf("Do = %q, %v, %v; want what the task returned", v, replayed, err)
		}
	})
}

func TestInvalidHandlersAreRefused(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", leasedOptions(semel.Hold()))
	unretried := semel.Define("unretried", semel.OperationOptions[input]{})
	mem := memory.New(memory.Options{})
	fn := func(context.Context, input) (int, error) { return 0, nil }
	fnTx := func(context.Context, *memory.Tx, input) (int, error) { return 0, nil }
	tests := map[string]struct {
		field string
		err   func(r *rig) error
	}{
		"an operation that the engine does not have": {"Operations", func(r *rig) error {
			return task.Handle(r.worker, semel.Define("other", leasedOptions(semel.Hold())), fn, task.HandlerOptions{})
		}},
		"another operation of the name": {"Operations", func(r *rig) error {
			return task.Handle(r.worker, semel.Define("op", leasedOptions(semel.Keyed())), fn, task.HandlerOptions{})
		}},
		"a wrong definition": {"Lease", func(r *rig) error {
			return task.Handle(r.worker, semel.Define("op", semel.OperationOptions[input]{Lease: -1}), fn, task.HandlerOptions{})
		}},
		"keys of callers": {"Retry", func(r *rig) error {
			return task.Handle(r.worker, unretried, fn, task.HandlerOptions{})
		}},
		"an effect outside, in a transaction": {"Policy", func(r *rig) error {
			return task.HandleTx(r.worker, r.Engine, op, fnTx, task.HandlerOptions{})
		}},
		"a second function": {"Operation", func(r *rig) error {
			return errors.Join(
				task.Handle(r.worker, op, fn, task.HandlerOptions{}), task.Handle(r.worker, op, fn, task.HandlerOptions{}),
			)
		}},
		"no function": {"fn", func(r *rig) error {
			return task.Handle[input, int](r.worker, op, nil, task.HandlerOptions{})
		}},
		"no function in a transaction": {"fn", func(r *rig) error {
			return task.HandleTx[input, int](r.worker, r.Engine, op, nil, task.HandlerOptions{})
		}},
		"a transaction of another engine": {"engine", func(r *rig) error {
			return task.HandleTx(r.worker, newRig(t, mem, task.Options{}, op).Engine, semel.Define("op", atomicOptions()), fnTx, task.HandlerOptions{})
		}},
		"Concurrency": {"Concurrency", func(r *rig) error {
			return task.Handle(r.worker, op, fn, task.HandlerOptions{Concurrency: -1})
		}},
		"Timeout":      {"Timeout", func(r *rig) error { return task.Handle(r.worker, op, fn, task.HandlerOptions{Timeout: -1}) }},
		"no functions": {"Worker", func(r *rig) error { return r.worker.Run(t.Context()) }},
		"Slots":        {"Slots", func(r *rig) error { _, err := task.New(r.Engine, task.Options{Slots: -1}); return err }},
		"Poll":         {"Poll", func(r *rig) error { _, err := task.New(r.Engine, task.Options{Poll: -1}); return err }},
		"Sweeper": {"Every", func(r *rig) error {
			_, err := task.New(r.Engine, task.Options{Sweeper: admin.SweeperOptions{Every: -1}})
			return err
		}},
		"engine": {"engine", func(*rig) error { _, err := task.New(nil, task.Options{}); return err }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mem, task.Options{}, op, unretried)
			err := tt.err(r)
			if wrong, ok := errtype.Find[*semel.FieldError](err); !ok || wrong.Field != tt.field {
				t.Errorf("got %v, want an error that names %s", err, tt.field)
			}
		})
	}
}
