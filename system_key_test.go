package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestDirectCallWithRetryIsFinishedByAWorker: a direct call of an operation with
// Retry stores the input that a worker needs to finish it. An Enqueue of the same
// key reports that the record exists.
func TestDirectCallWithRetryIsFinishedByAWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("own", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: &semel.Retry{}})
		p, mem := solo(t, semel.Options{Operations: []semel.Declared{op}})
		call := op.Call(me, "k", "the input")
		_, _, err := semel.DoTx(t.Context(), p.Engine, call, func(context.Context, *memory.Tx) (string, error) {
			return "", errors.New("not this time")
		})
		if semel.VerdictOf(err) != store.NotCommitted {
			t.Fatalf("DoTx = %v, want nothing committed", err)
		}
		if added, err := semel.Enqueue(t.Context(), p.Engine, call, semel.EnqueueOptions{}); added || err != nil {
			t.Fatalf("Enqueue = %t, %v, want it to be there", added, err)
		}
		r := wantState(t, mem, call, store.Pending)
		if string(r.Input) != `"the input"` || r.Expire != 0 {
			t.Errorf("%s waits with the input %q and expires in %v, want what it was called with, never", r.ID, r.Input, r.Expire)
		}
	})
}

// TestRedeliveredCallIsNotQueued: a call that an external system redelivers stores
// no input for workers, and cannot be enqueued.
func TestRedeliveredCallIsNotQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("delivered", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: &semel.Retry{Redelivered: true}})
		p, mem := solo(t, semel.Options{Operations: []semel.Declared{op}})
		call := op.Call(me, "k", "the input")
		_, err := semel.Enqueue(t.Context(), p.Engine, call, semel.EnqueueOptions{})
		wantField(t, err, "Redelivered")
		wantField(t, adapter.CheckWorker(p, op, true), "Redelivered")
		_, _, _ = semel.DoTx(t.Context(), p.Engine, call, func(context.Context, *memory.Tx) (string, error) {
			return "", errors.New("not this time")
		})
		if r := wantState(t, mem, call, store.Pending); len(r.Input) > 0 || r.Expire <= 0 {
			t.Errorf("%s waits with the input %q and expires in %v, want none and some day", r.ID, r.Input, r.Expire)
		}
	})
}
