package semel_test

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestAttemptDoesNotRetainItsBatch: attempts of one Dequeue do not keep each
// other's records in memory. An attempt may run for hours.
func TestAttemptDoesNotRetainItsBatch(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{}})
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	for _, key := range []string{"a", "b"} {
		if _, err := semel.Enqueue(t.Context(), engine, op.Call(me, key, "a long input of "+key), semel.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	attempts, err := adapter.Dequeue(t.Context(), engine, op, 2)
	if err != nil || len(attempts) != 2 {
		t.Fatalf("Dequeue = %d attempts, %v, want 2", len(attempts), err)
	}
	long, input := attempts[0], weak.Make(&attempts[1].Record().Input[0])
	if _, err := attempts[1].End("v", nil); err != nil {
		t.Error(err)
	}
	clear(attempts)
	for range 3 {
		runtime.GC()
	}
	if input.Value() != nil {
		t.Error("an attempt keeps the input of another one, which has ended")
	}
	if _, err := long.End("v", nil); err != nil {
		t.Error(err)
	}
}
