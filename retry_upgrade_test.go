package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestRetryAddedToAnExistingOperation: attempts that ended before the operation
// had a Retry do not count as crashes.
func TestRetryAddedToAnExistingOperation(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]semel.Policy{
		"Hold": semel.Hold(), "AtLeastOnce": semel.AtLeastOnce(), "Atomic": semel.Atomic(),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { testRetryThatIsAddedLater(t, name, policy) })
		})
	}
}

func testRetryThatIsAddedLater(t *testing.T, name string, policy semel.Policy) {
	t.Helper()
	mem := memory.New(memory.Options{})
	before := plain("op", semel.OperationOptions[string]{Policy: policy})
	p := start(t, mem, semel.Options{})
	for range 5 {
		if a := do(t.Context(), p, before.Call(me, "k", "in"), fails(semel.NotCommitted(errBoom))); a.err == nil {
			t.Fatal("the attempt did not fail")
		}
	}
	after := plain("op", semel.OperationOptions[string]{Policy: policy, Retry: &semel.Retry{MaxCrashes: 2, MaxErrors: 2}})
	p = start(t, mem, semel.Options{Operations: []semel.Declared{after}})
	if name == "AtLeastOnce" {
		// The first crash of this version: one more is left.
		dying := start(t, mem, semel.Options{})
		do(t.Context(), dying, after.Call(me, "k", "in"), func(context.Context) (string, error) {
			dying.crash()
			return "", errBoom
		})
		pass(time.Minute)
	}
	do(t.Context(), p, after.Call(me, "k", "in"), func(ctx context.Context) (string, error) {
		if name != "Atomic" {
			return "done", nil
		}
		return semel.InTx(ctx, p.Engine, func(context.Context, *memory.Tx) (string, error) { return "done", nil })
	}).want(t, "done", false)
	if r := record(t, mem, after.Call(me, "k", "in")); r.State != store.Succeeded {
		t.Errorf("the record is %v, want Succeeded", r.State)
	}
}

// TestTwoDefinitionsOfOneName: an engine that was given an operation runs no other
// definition of its name, because records know operations by their names.
func TestTwoDefinitionsOfOneName(t *testing.T) {
	t.Parallel()
	one, other := plain("create", semel.OperationOptions[string]{}), semel.Define("create", semel.OperationOptions[int]{})
	mem := memory.New(memory.Options{})
	if _, err := semel.New(mem, semel.Options{Operations: []semel.Declared{one, other}}); !isField(err, "Operations") {
		t.Errorf("New with two definitions of one name: %v, want a FieldError of Operations", err)
	}
	p := start(t, mem, semel.Options{Operations: []semel.Declared{one, one}})
	do(t.Context(), p, one.Call(me, "k", "in"), returns("done")).want(t, "done", false)
	do(t.Context(), p, other.Call(me, "k2", 1), never(t)).wantErr(t, semel.ErrInvalid)
	doTx(t.Context(), p, other.Call(me, "k3", 1), neverTx(t)).wantErr(t, semel.ErrInvalid)
	if _, err := semel.Enqueue(t.Context(), p, other.Call(me, "k4", 1), semel.EnqueueOptions{}); !isField(err, "Operations") {
		t.Errorf("Enqueue: %v, want a FieldError of Operations", err)
	}
}

// TestEnqueueRejectsOperationsWithoutRetry: no worker runs them, so the call would
// wait forever.
func TestEnqueueRejectsOperationsWithoutRetry(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	op := plain("mail", semel.OperationOptions[string]{})
	if _, err := semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), semel.EnqueueOptions{}); !isField(err, "Retry") {
		t.Errorf("Enqueue: %v, want a FieldError of Retry", err)
	}
	if r := record(t, mem, op.Call(me, "k", "in")); r.State != store.Absent {
		t.Errorf("the record is %v, want none", r.State)
	}
}

func isField(err error, name string) bool {
	field, ok := errtype.Find[*semel.FieldError](err)
	return ok && field.Field == name
}
