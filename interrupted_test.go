package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestEndedTransactionIsNotStoredAsFailure: a lost connection, a timeout, or a
// function that ends its transaction itself is not stored as the operation's
// failure, not even if the function marks its error as final. If the function has
// ended the transaction, a change of the record proves nothing about its writes.
func TestEndedTransactionIsNotStoredAsFailure(t *testing.T) {
	interrupted := fault{Rollback: store.ErrInterrupted}
	ended := fault{Rollback: store.ErrTxEndedByHandler, After: store.ErrTxEndedByHandler}
	for name, tt := range map[string]struct {
		commit fault
		fnErr  error
	}{
		"interrupted, error":                 {interrupted, errBoom},
		"interrupted, final error":           {interrupted, semel.Final(errBoom)},
		"ended by the handler, error":        {ended, errBoom},
		"ended by the handler, final error":  {ended, semel.Final(errBoom)},
		"ended by the handler without error": {ended, nil},
	} {
		t.Run(name, func(t *testing.T) {
			eachTxMode(t, func(t *testing.T, s txMode) {
				p, mem := solo(t, semel.Options{})
				s.o.OnError = semel.Keep
				call := plain("op", s.o).Call(me, "k", "in")
				p.faults.Decide(everyCommit(tt.commit))
				a := s.ask(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { return "", tt.fnErr })
				want, wantErr := store.NotCommitted, semel.ErrUnavailable
				if tt.commit.After != nil {
					want, wantErr = store.Unknown, semel.ErrOutcomeUnknown
					p.seen.want(t, event.Conflict)
				}
				a.wantErr(t, wantErr)
				check.Equal(t, semel.VerdictOf(a.err), want, "verdict")
				if r := record(t, mem, call); r.State.Final() {
					t.Errorf("the record is %v, want none that is final", r.State)
				}
			})
		})
	}
}

// TestFunctionWritesItsOwnRecord: the call never succeeds, and it does not run
// forever.
func TestFunctionWritesItsOwnRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		runs := 0
		_, _, err := semel.DoTx(t.Context(), p.Engine, theCall, func(ctx context.Context, tx *memory.Tx) (string, error) {
			runs++
			_, err := semel.EnqueueTx(ctx, p.Engine, tx, theCall, semel.EnqueueOptions{Delay: time.Hour})
			return "v", err
		})
		if err == nil || runs > 8 {
			t.Errorf("%d runs, %v, want an error after at most 8", runs, err)
		}
	})
}

// TestWaitEndsBeforeTheTransactionBegins: the function does not run for a caller
// that canceled while it waited for a transaction.
func TestWaitEndsBeforeTheTransactionBegins(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.hang()
		ctx, hangUp := hangUpCall(t)
		caller := blocked(func() answer { return doTx(ctx, p, theCall, neverTx(t)) })
		hangUp()
		(<-caller).wantErr(t, semel.ErrUnavailable)
	})
}

// TestCanceledCallerDoesNotFailOthers: a caller whose wait ends while it waits for
// the store does not fail the other callers of the key. One of them sends the
// request in its place. (TestRule06CancelOfTheCallerThatSendsTheClaim cancels its context.)
func TestCanceledCallerDoesNotFailOthers(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Minute})
		call := plain("op", d.o).Call(me, "k", "in")
		p.faults.Decide(failCall(1, fault{Hang: true}))
		ctx, hangUp := hangUpCall(t)
		leader := blocked(func() answer { return d.ask(ctx, p, call, never(t)) })
		follower := d.later(t, p, call, returns("v"))
		hangUp()
		(<-leader).wantErr(t, semel.ErrUnavailable)
		(<-follower).want(t, "v", false)
	})
}
