package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// silenced lets the database end the first transaction while its function still
// runs, as it does with one that has been silent for too long. meanwhile runs after
// that.
func silenced(meanwhile func()) func(request) fault {
	return commits(fault{Rollback: errors.New("terminated by the server"), Reply: meanwhile})
}

// TestSupersededLeaderReturnsTheNewOutcome: the database has ended the
// transaction, and another process may have run the operation since. The leader
// returns that outcome.
func TestSupersededLeaderReturnsTheNewOutcome(t *testing.T) {
	eachInBubble(t, map[string]error{"unawares": nil, "by an error of its own": errors.New("connection gone")}, func(t *testing.T, fnErr error) {
		leader, winner, _ := pair(t, semel.Options{})
		leader.faults.Decide(silenced(func() { doTx(t.Context(), winner, theCall, puts("e", "winner")).want(t, "winner", false) }))
		a := doTx(t.Context(), leader, theCall, func(context.Context, *memory.Tx) (string, error) { return "silenced", fnErr })
		a.want(t, "winner", true)
		leader.seen.want(t, event.Fenced)
	})
}

// TestInterruptedLeaderReportsNotCommitted if no other process has run the
// operation.
func TestInterruptedLeaderReportsNotCommitted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.faults.Decide(silenced(nil))
		a := doTx(t.Context(), p, theCall, puts("e", "v"))
		a.wantErr(t, semel.ErrUnavailable)
		a.wantRunNow(t, store.NotCommitted, store.Absent)
		doTx(t.Context(), p, theCall, puts("e", "v")).want(t, "v", false)
	})
}
