package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// conflictRun calls an operation whose first transactions conflict with others, and
// returns how often its function ran.
func conflictRun(t *testing.T, conflicts int, o semel.OperationOptions[string], fnErr error) (runs int, retried int, err error) {
	t.Helper()
	p, _ := solo(t, semel.Options{})
	p.faults.Decide(func(r request) fault {
		if r.Method == "Atomic" && r.MethodN <= conflicts {
			return fault{Rollback: store.ErrConflict}
		}
		return fault{}
	})
	a := doTx(t.Context(), p, plain("op", o).Call(me, "k", "in"), func(context.Context, *memory.Tx) (string, error) {
		runs++
		return "v", fnErr
	})
	return runs, p.seen.count(event.Retried), a.err
}

func TestConflictingTransactionRunsAgain(t *testing.T) {
	eachInBubble(t, map[string]semel.OperationOptions[string]{
		"inline": {},
		"leased": {Policy: semel.Atomic(), Lease: lease},
	}, func(t *testing.T, o semel.OperationOptions[string]) {
		if runs, retried, err := conflictRun(t, 3, o, nil); runs != 4 || retried != 3 || err != nil {
			t.Errorf("runs %d, retried %d, %v, want 4, 3 and no error", runs, retried, err)
		}
	})
}

// An outcome that a function derives from reads in an aborted transaction is not
// stored, because a retry may read something else.
func TestOutcomeOfAConflictingTransactionIsNotStored(t *testing.T) {
	eachInBubble(t, map[string]semel.OperationOptions[string]{
		"inline":      {},
		"inline kept": {OnError: semel.Keep},
		"leased":      {Policy: semel.Atomic(), Lease: lease, OnError: semel.Keep},
	}, func(t *testing.T, o semel.OperationOptions[string]) {
		runs, _, err := conflictRun(t, 1000, o, semel.Final(errBoom))
		if runs < 2 || !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("runs %d, %v, want some, and that the store lost", runs, err)
		}
		check.Equal(t, semel.VerdictOf(err), store.NotCommitted, "verdict")
		if _, kept := errtype.Find[*semel.Failure](err); kept {
			t.Errorf("the failure is kept: %v", err)
		}
	})
}

func optimistic() semel.OperationOptions[string] {
	return semel.OperationOptions[string]{Optimistic: true}
}

// TestOptimisticConcurrently: both run, as neither can see the other. One commits; the
// other is rolled back and answers from the record.
func TestOptimisticConcurrently(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, optimistic())
		slow := make(chan struct{})
		first := blocked(func() answer {
			return doTx(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				v, err := puts("slow", "slow")(ctx, tx)
				<-slow
				return v, err
			})
		})
		doTx(t.Context(), other, call, puts("quick", "quick")).want(t, "quick", false) // it does not wait
		close(slow)
		(<-first).want(t, "quick", true)
		wantEffect(t, p.mem, "quick", true)
		wantEffect(t, p.mem, "slow", false)
		p.seen.want(t, event.Fenced)
		doTx(t.Context(), p, call, neverTx(t)).want(t, "quick", true)
	})
}

// TestOptimisticFailureToKeep: of a concurrent failure and success, all callers get
// the one that was stored first.
func TestOptimisticFailureToKeep(t *testing.T) {
	eachInBubble(t, map[string]bool{"the failure is first": true, "the success is first": false}, func(t *testing.T, failsFirst bool) {
		p, other, mem := pair(t, semel.Options{})
		o := optimistic()
		o.OnError = semel.Keep
		call := plain("op", o).Call(me, "k", "in")
		quick, slow := failsAfter(errBoom), puts("slow", "v")
		if !failsFirst {
			quick, slow = puts("quick", "v"), failsAfter(errBoom)
		}
		last := doTx(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			doTx(t.Context(), other, call, quick)
			return slow(ctx, tx)
		})
		wantEffect(t, mem, "slow", false)
		wantEffect(t, mem, "quick", !failsFirst)
		if failsFirst {
			last.wantFailure(t, "boom")
			wantState(t, mem, call, store.Failed)
			return
		}
		last.want(t, "v", true)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestOptimisticRetry: the error of an attempt that lost the conflict is not counted. The error of another
// attempt is counted once.
func TestOptimisticRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, mem := pair(t, semel.Options{})
		o := optimistic()
		o.Retry = steady(9, 9)
		call := plain("op", o).Call(me, "k", "in")
		a := doTx(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			doTx(t.Context(), other, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
			return failsAfter(errBoom)(ctx, tx)
		})
		a.wantErr(t, semel.ErrInProgress) // it is not due again
		r := wantState(t, mem, call, store.Pending)
		if got := progress(t, mem, call); got.Errors != 1 || r.Attempt != 1 {
			t.Errorf("attempt %d led to %+v, want one error", r.Attempt, got)
		}
	})
}

// TestOptimisticAlwaysConflicts: the call fails with proof that nothing was done.
func TestOptimisticAlwaysConflicts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, optimistic())
		waiting := plain("op", queueable(optimistic())).Call(me, "k", "in")
		runs := 0
		a := doTx(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			if runs++; runs == 1 {
				_, _ = semel.Enqueue(t.Context(), other, waiting, semel.EnqueueOptions{})
			} else if _, err := admin.Reschedule(t.Context(), other, call.ID(), 0); err != nil {
				t.Errorf("Reschedule: %v", err)
			}
			return puts("e", "v")(ctx, tx)
		})
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		if runs < 2 || runs > 8 {
			t.Errorf("it ran %d times, want a few", runs)
		}
		wantEffect(t, p.mem, "e", false)
	})
}
