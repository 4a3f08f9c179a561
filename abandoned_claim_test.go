package semel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestLateClaimIsRejected: a claim that was released before it arrived must not be
// applied. No function ran for it, and no process would end it.
func TestLateClaimIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		claims := 0
		p.faults.Decide(func(r request) fault {
			if r.To() != store.InProgress || claims == 3 {
				return fault{}
			}
			claims++
			if claims == 1 {
				late := slices.Clone(r.Changes)
				time.AfterFunc(500*time.Millisecond, func() { _, _ = mem.Swap(t.Context(), late) })
			}
			return fault{Before: errCut}
		})
		do(t.Context(), p, theCall, returns("v")).wantErr(t, semel.ErrUnavailable)
		pass(time.Minute)
		do(t.Context(), p, theCall, returns("v")).want(t, "v", false)
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
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrUnavailable)
		check.NoError(t, p.Close(t.Context()), "Close")
		wantState(t, mem, theCall, store.Pending)
	})
}

// TestRejectedClaimIsNotReleased: the claim was not written. There is nothing to
// release, and Close has nothing to wait for.
func TestRejectedClaimIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(func(r request) fault { return fault{Result: &store.SwapResult{Err: errBoom}} })
		do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrUnavailable, errBoom)
		check.Require(t, p.Close(t.Context()), "Close")
		check.Equal(t, p.faults.Calls(), 1, "calls of the store (the claim only)")
	})
}

// TestAbandonedClaimsAreReleasedInBatches: released one by one, they would hold
// their keys for longer than their callers wait before a retry.
func TestAbandonedClaimsAreReleasedInBatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		p, seen := grouped(t, mem, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		gates := hold(p, seen.note, 3)
		ctx, giveUp := context.WithCancel(t.Context())
		waits := []<-chan answer{claim(t.Context(), p, op, "first")}
		const many = 20
		for n := range many {
			waits = append(waits, claim(ctx, p, op, fmt.Sprint(n)))
		}
		close(gates[0])
		synctest.Wait() // they are on their way
		giveUp()
		synctest.Wait()
		close(gates[1])
		synctest.Wait() // the first caller releases its claim, and all others wait for it
		close(gates[2])
		for _, wait := range waits {
			<-wait
		}
		check.Require(t, p.Close(t.Context()), "Close")
		for n := range many {
			wantState(t, mem, op.Call(me, fmt.Sprint(n), "in"), store.Pending)
		}
		askings := 0
		for _, batch := range seen.seen() {
			if slices.ContainsFunc(batch, func(c string) bool { return strings.HasSuffix(c, "→Pending") }) {
				askings++
			}
		}
		if askings > 2 {
			t.Errorf("the store was called %d times to release %d claims: %v", askings, many, seen.seen())
		}
	})
}
