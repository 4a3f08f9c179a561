package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
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
