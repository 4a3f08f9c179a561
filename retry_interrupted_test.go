package semel_test

import (
	"context"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// interruptsHandler interrupts every transaction, whatever its function returns.
func interruptsHandler(r request) fault {
	if r.Method == "Atomic" {
		return fault{Rollback: store.ErrInterrupted}
	}
	return fault{}
}

// TestInterruptedTransactionCountsAsAnError: a function that always exceeds a
// timeout of the database uses up MaxErrors like a function that fails.
func TestInterruptedTransactionCountsAsAnError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(2, 9)
		p, mem := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(interruptsHandler)
		s.ask(t.Context(), p, call, failsAfter(semel.Final(errBoom))).wantRunNow(t, store.NotCommitted, store.Pending)
		wantDue(t, wantState(t, mem, call, store.Pending), 10*time.Second)
		wantTries(t, progress(t, mem, call), admin.TryError)
		pass(time.Minute)
		wantTries(t, wantCode(t, s.ask(t.Context(), p, call, puts("e", "v")).err, "exhausted"), admin.TryError, admin.TryError)
		wantState(t, mem, call, store.Failed)
		wantEffect(t, mem, "e", false)
	})
}

// TestInterruptionByShutdownIsNoError: the driver interrupts the transaction
// because its context has ended.
func TestInterruptionByShutdownIsNoError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(1, 1)
		p, mem := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(interruptsHandler)
		for range 3 {
			ctx, stop := context.WithCancel(t.Context())
			s.ask(ctx, p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				stop()
				return failsAfter(ctx.Err())(ctx, tx)
			}).wantRunNow(t, store.NotCommitted, store.Pending)
		}
		wantTries(t, progress(t, mem, call), admin.TryInterrupted, admin.TryInterrupted, admin.TryInterrupted)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}

// TestAttemptTimeoutCountsAsAnError: a function that always exceeds its attempt's
// deadline is not retried forever.
func TestAttemptTimeoutCountsAsAnError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(2, 9)
		p, mem := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		slow := func() answer {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.ask(ctx, p, call, func(ctx context.Context, _ *memory.Tx) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		}
		slow().wantRunNow(t, store.NotCommitted, store.Pending)
		wantDue(t, wantState(t, mem, call, store.Pending), 10*time.Second)
		pass(time.Minute)
		wantTries(t, wantCode(t, slow().err, "exhausted"), admin.TryError, admin.TryError)
	})
}
