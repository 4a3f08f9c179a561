package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store/memory"
)

// TestTakeoverByAWaiterHasTheWholeLease: the lease counts from the claim, not from
// the beginning of the wait.
func TestTakeoverByAWaiterHasTheWholeLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{
			Policy: semel.AtLeastOnce(), Lease: 10 * time.Second, Wait: time.Minute,
		}).Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		waiter := start(t, mem, semel.Options{})
		do(t.Context(), waiter, call, func(ctx context.Context) (string, error) {
			pass(5 * time.Second)
			if err := context.Cause(ctx); err != nil {
				t.Errorf("after half of its lease: %v", err)
			}
			return "v", nil
		}).want(t, "v", false)
		waiter.seen.want(t, event.Takeover)
		waiter.seen.wantNone(t, event.LeaseLost)
	})
}
