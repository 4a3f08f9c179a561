package boundary_test

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

// taskMode is one way to run a task.
type taskMode struct {
	policy semel.Policy
	handle func(t *testing.T, w *fixture, worker *task.Worker, op *semel.Operation[string], body body) error
	// state and effects are expected after the task has failed twice, which is the
	// limit of its Retry.
	state   store.State
	effects int
	// succeeds is the state of a task whose function returns success.
	succeeds store.State
}

func handle(_ *testing.T, w *fixture, worker *task.Worker, op *semel.Operation[string], body body) error {
	return task.Handle(worker, op, func(ctx context.Context, _ string) (string, error) { return "", body(ctx, w.effect) }, task.HandlerOptions{})
}

func handleTx(_ *testing.T, w *fixture, worker *task.Worker, op *semel.Operation[string], body body) error {
	return task.HandleTx(worker, w.engine, op, func(ctx context.Context, tx *memory.Tx, _ string) (string, error) {
		return "", body(ctx, w.effectIn(tx))
	}, task.HandlerOptions{})
}

func handleInTx(_ *testing.T, w *fixture, worker *task.Worker, op *semel.Operation[string], body body) error {
	return task.Handle(worker, op, func(ctx context.Context, _ string) (string, error) {
		return semel.InTx(ctx, w.engine, func(ctx context.Context, tx *memory.Tx) (string, error) { return "", body(ctx, w.effectIn(tx)) })
	}, task.HandlerOptions{})
}

func taskModes() map[string]taskMode {
	return map[string]taskMode{
		"Hold":                  {semel.Hold(), handle, store.InDoubt, 1, store.Succeeded},
		"Heal":                  {semel.Heal(nothingFound), handle, store.InDoubt, 1, store.Succeeded},
		"Fenced":                {semel.Fenced(raised, nothingFound), handle, store.InDoubt, 2, store.Succeeded},
		"Keyed":                 {semel.Keyed(), handle, store.InDoubt, 2, store.Succeeded},
		"AtLeastOnce":           {semel.AtLeastOnce(), handle, store.InDoubt, 2, store.Succeeded},
		"HandleTx":              {semel.Atomic(), handleTx, store.Failed, 0, store.Succeeded},
		"InTx":                  {semel.Atomic(), handleInTx, store.Failed, 0, store.Succeeded},
		"Atomic without a call": {semel.Atomic(), handle, store.InDoubt, 2, store.InDoubt},
	}
}

// TestInnerEndingDecidesNothingForTasks: however an inner call ends, the task is tried
// again as after any other error of its function, and counts it.
func TestInnerEndingDecidesNothingForTasks(t *testing.T) {
	eachInnerCall(t, taskModes(), testTask)
}

func testTask(t *testing.T, by taskMode, end innerCall, shape func(error) error) {
	t.Helper()
	op := semel.Define("outer", plan{
		Policy: by.policy, Lease: 12 * time.Hour,
		Retry: &semel.Retry{MaxErrors: 2, Delay: func(int) time.Duration { return 5 * time.Second }},
	})
	w := newFixture(t, op)
	worker := check.Must(task.New(w.engine, task.Options{NoSweeper: true}))(t)
	check.Require(t, by.handle(t, w, worker, op, end.body(t, w, shape)))
	call := op.Call(caller, "outer", "in")
	check.Must(semel.Enqueue(t.Context(), w, call, semel.EnqueueOptions{}))(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	check.NoError(t, worker.Run(ctx), "Run")
	r := w.record(t, call)
	if end.wantError == nil && !end.panics {
		check.Equal(t, r.State, by.succeeds, "the task")
		return
	}
	if r.State != by.state || w.effects() != by.effects {
		t.Errorf("the task is %v with %d effects, want %v with %d", r.State, w.effects(), by.state, by.effects)
	}
	if p, _ := admin.ProgressOf(r); by.effects != 1 && (p.Errors != 2 || p.Snoozes != 0) {
		t.Errorf("the task counts %+v, want two errors", p)
	}
}
