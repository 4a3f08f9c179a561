package semel_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestUnreferencedEngineIsCollected, even if it was not closed, and long before
// the lease of its last attempt expires.
func TestUnreferencedEngineIsCollected(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	core := func() weak.Pointer[engine.Core] {
		e, err := semel.New(mem, semel.Options{Survive: store.NoFailure, Lease: 1000 * time.Hour})
		if err != nil {
			t.Fatalf("New: %v", err)
		}
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		if _, _, err := semel.Do(t.Context(), e, call, returns("v")); err != nil {
			t.Fatalf("Do: %v", err)
		}
		return weak.Make(e.Core)
	}()
	for range 100 {
		if runtime.GC(); core.Value() == nil {
			return
		}
	}
	t.Error("the engine is kept by something of its own")
}
