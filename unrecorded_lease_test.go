package semel_test

import (
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestUnrecordedOutcomeKeepsTheLease: the item renews its lease itself, so that a
// finished effect does not run again.
func TestUnrecordedOutcomeKeepsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		other := start(t, p.mem, semel.Options{Operations: []semel.Declared{op}})
		a := dequeuedOne(t, p, op)
		p.faults.Decide(failTo(store.Succeeded, fault{Before: errCut}))
		answerOf(a.End("v", nil)).want(t, "v", false)
		for range 10 {
			pass(10 * time.Second)
			check.Result(admin.Sweep(t.Context(), other, 10))(t, admin.Swept{}, "Sweep (want nothing freed)")
		}
		p.faults.Decide(nil)
		pass(time.Minute)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 1, "attempt")
	})
}
