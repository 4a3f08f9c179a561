package semel_test

import (
	"slices"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// TestLateClaimIsRejected: a claim that was released before it arrived must not be
// applied. No function ran for it, and no process would end it.
func TestLateClaimIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		claims := 0
		p.faults.Decide(func(r request) fault {
			if r.To() != store.InProgress {
				return fault{}
			}
			if claims++; claims > 3 {
				return fault{}
			}
			if claims == 1 {
				late := slices.Clone(r.Changes)
				time.AfterFunc(500*time.Millisecond, func() { _, _ = mem.Swap(t.Context(), late) })
			}
			return fault{Before: errCut}
		})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, returns("v")).wantErr(t, semel.ErrUnavailable)
		pass(time.Minute)
		do(t.Context(), p, call, returns("v")).want(t, "v", false)
	})
}

// TestClaimThatArrivesDuringItsRelease is released all the same. No function ran
// for it, and no process would end it.
func TestClaimThatArrivesDuringItsRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		var claim []store.Change
		p.faults.Decide(func(r request) fault {
			switch {
			case r.To() == store.InProgress:
				claim = slices.Clone(r.Changes)
				return fault{Before: errCut}
			case claim != nil && r.Method == "Swap" && r.Changes[0].If == claim[0].To.Token:
				late := claim
				claim = nil
				return fault{Reply: func() { _, _ = mem.Swap(t.Context(), late) }}
			default:
				return fault{}
			}
		})
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable)
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantState(t, mem, call, store.Pending)
	})
}

// TestRejectedClaimIsNotReleased: the claim was not written. There is nothing to
// release, and Close has nothing to wait for.
func TestRejectedClaimIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(func(r request) fault { return fault{Result: &store.SwapResult{Err: errBoom}} })
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable, errBoom)
		if err := p.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
		if got := p.faults.Calls(); got != 1 {
			t.Errorf("the store was called %d times, want the claim only", got)
		}
	})
}
