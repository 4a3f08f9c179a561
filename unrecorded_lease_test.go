package semel_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestUnrecordedOutcomeKeepsTheLease: the item renews its lease itself, so that a
// finished effect does not run again.
func TestUnrecordedOutcomeKeepsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce(), Retry: &semel.Retry{}})
		p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		other := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		call := op.Call(me, "k", "in")
		enqueue(t, p, mem, call, 0)
		claimed, err := adapter.Dequeue(t.Context(), p, op, 1)
		if err != nil || len(claimed) != 1 {
			t.Fatalf("Dequeue = %v, %v, want one", claimed, err)
		}
		p.faults.Decide(func(r request) fault {
			if len(r.Changes) == 1 && r.Changes[0].To.State == store.Succeeded {
				return fault{Before: errCut}
			}
			return fault{}
		})
		if _, err := claimed[0].End("v", nil); err != nil {
			t.Errorf("End: %v, want success", err)
		}
		for range 10 {
			pass(10 * time.Second)
			check.Result(admin.Sweep(t.Context(), other, 10))(t, (admin.Swept{}), "Sweep (want nothing freed)")
		}
		p.faults.Decide(nil)
		pass(time.Minute)
		if r := wantState(t, mem, call, store.Succeeded); r.Attempt != 1 {
			t.Errorf("attempt %d succeeded, want the first", r.Attempt)
		}
	})
}
