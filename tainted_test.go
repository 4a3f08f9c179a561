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

// TestReceiverProvesEarlierAttempts: under Keyed and Fenced, an error
// that the function marks as NotCommitted is the receiver's answer about all
// attempts, even if it uses up the tries. A canceled key or a snooze does not come
// from the receiver, so it proves nothing about an attempt that has died.
func TestReceiverProvesEarlierAttempts(t *testing.T) {
	look := func(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil }
	raise := func(context.Context, semel.Scope, string, uint32) error { return nil }
	for name, policy := range map[string]semel.Policy{"Keyed": semel.Keyed(), "Fenced": semel.Fenced(raise, look)} {
		t.Run(name, func(t *testing.T) {
			t.Run("used up", func(t *testing.T) { taintedEnds(t, policy, 1, semel.NotCommitted(errBoom), store.Failed) })
			t.Run("snooze", func(t *testing.T) { taintedEnds(t, policy, 2, semel.Snooze(0), store.Pending) })
			t.Run("cancelled", func(t *testing.T) { taintedEnds(t, policy, 2, nil, store.InDoubt) })
			t.Run("the receiver's word", func(t *testing.T) { taintedEnds(t, policy, 2, semel.Final(errBoom), store.Failed) })
		})
	}
}

// taintedEnds lets an attempt end without knowing, and then the next with err; nil:
// its key was cancelled meanwhile.
func taintedEnds(t *testing.T, policy semel.Policy, maxErrors int, err error, want store.State) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", semel.OperationOptions[string]{Policy: policy, Retry: steady(maxErrors+1, 9)})
		p, mem := owned(t, op)
		call := queued(t, p, op, "k")[0]
		work(t, p, op, fails(errors.New("no answer"))) // possibly after its effect
		wantState(t, mem, call, store.Pending)
		pass(time.Hour)
		attempts := dequeued(t, p, op, 1)
		if err == nil {
			check.Must(admin.Cancel(t.Context(), p, call.ID(), "not any more"))(t)
			adapter.RenewLeases(t.Context(), p, attempts)
			err = semel.NotCommitted(context.Cause(attempts[0].Context()))
		}
		_, verdict := attempts[0].End(nil, err)
		r := wantState(t, mem, call, want)
		if got := semel.VerdictOf(verdict); want != store.Failed && (got != store.Unknown || !r.Tainted) {
			t.Errorf("got %v, tainted %t: want Unknown, because the receiver was not called", verdict, r.Tainted)
		}
	})
}
