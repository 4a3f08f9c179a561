package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// TestCancelRequestIsForOneRecord: the request is for a record that has been
// purged since. It does not cancel the next record of the key, which can be
// canceled on its own.
func TestCancelRequestIsForOneRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: steady(9, 9), Retention: time.Hour})
		p, mem := owned(t, op)
		c := queued(t, p, op, "k")[0]
		a := dequeued(t, p, op, 1)[0]
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the first"))(t)
		answerOf(a.End("v", nil)).want(t, "v", false)
		pass(61 * time.Minute)
		check.Result(admin.Purge(t.Context(), p, 100))(t, 1, "Purge")

		queued(t, p, op, "k")
		a = dequeued(t, p, op, 1)[0]
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		answerOf(a.End(nil, semel.Snooze(0))).wantRunNow(t, store.NotCommitted, store.Pending)
		a = dequeued(t, p, op, 1)[0]
		check.NoError(t, context.Cause(a.Context()), "the next record's attempt is cancelled")
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the second"))(t)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		if err := context.Cause(a.Context()); !errors.Is(err, semel.ErrCancelled) || err.Error() != "semel: cancelled: the second" {
			t.Errorf("it ends with %v, want it cancelled for the second reason", err)
		}
		wantState(t, mem, c, store.InProgress)
	})
}

// TestCancelDuringATakeover: another process takes a tainted record over before
// the cancellation marks it InDoubt. The new attempt receives the request like any
// running attempt.
func TestCancelDuringATakeover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		other := start(t, p.mem, semel.Options{Operations: []semel.Declared{op}})
		c := queued(t, p, op, "k")[0]
		answerOf(dequeued(t, p, op, 1)[0].End(nil, errBoom)).wantRunNow(t, store.Unknown, store.Pending)
		var taken *semel.Attempt
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" && taken == nil { // after the record was read
				check.Must(admin.Reschedule(t.Context(), other, c.ID(), 0))(t)
				taken = dequeued(t, other, op, 1)[0]
			}
			return fault{}
		})
		if r, err := admin.Cancel(t.Context(), p, c.ID(), "why"); err != nil || r.State != store.InProgress {
			t.Errorf("Cancel = %v, %v, want a request while it runs", r.State, err)
		}
		adapter.RenewLeases(t.Context(), other, []*semel.Attempt{taken})
		check.ErrorIs(t, context.Cause(taken.Context()), semel.ErrCancelled, "Cause")
	})
}

// TestCancelKeepsTheFirstReason: a second request to cancel the same attempt
// changes nothing. This holds too if the store answers so slowly that the request
// is older than the record was when it was read.
func TestCancelKeepsTheFirstReason(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, c := queuedTask(t, semel.Atomic(), 9, 9)
		a := dequeued(t, p, op, 1)[0]
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the first"))(t)
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" {
				pass(time.Second)
			}
			return fault{}
		})
		check.Must(admin.Cancel(t.Context(), p, c.ID(), "the second"))(t)
		p.faults.Decide(nil)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		if err := context.Cause(a.Context()); err == nil || err.Error() != "semel: cancelled: the first" {
			t.Errorf("the attempt ends with %v, want it cancelled for the first reason", err)
		}
	})
}
