package semel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// TestLongPurgeDoesNotDelayTheSweep: what dead workers left does not wait for
// the end of it.
func TestLongPurgeDoesNotDelayTheSweep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: steady(9, 9), Retention: time.Minute})
		p, mem := owned(t, op)
		const old = 20
		for i := range old {
			do(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), returns("v")).want(t, "v", false)
		}
		pass(time.Hour)
		dead := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		c := queued(t, p, op, "dead")[0]
		dequeued(t, dead, op, 1)
		dead.crash()
		p.faults.Decide(func(r request) fault {
			if r.Method == "Purge" {
				pass(10 * time.Second)
			}
			if r.Method == "Purge" && r.MethodN == old/2 {
				wantState(t, mem, c, store.Pending)
			}
			return fault{}
		})
		sweeper, err := admin.NewSweeper(p, admin.SweeperOptions{Every: 10 * time.Second, Batch: 1})
		if err != nil {
			t.Fatalf("NewSweeper: %v", err)
		}
		if err := sweeper.Pass(t.Context()); err != nil || p.faults.CallsOf("Purge") != old+1 {
			t.Errorf("Pass: %v, after %d batches, want %d", err, p.faults.CallsOf("Purge"), old+1)
		}
	})
}
