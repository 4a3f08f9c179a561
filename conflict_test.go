package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// conflictingStore is a store whose first transactions conflict with others, as those of a
// database that keeps its transactions serializable do.
type conflictingStore struct {
	*memory.Store

	left int
}

func (l *conflictingStore) Atomic(ctx context.Context, id store.ID, hold bool, run runInTx) (store.Verdict, error) {
	return l.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		c, err := run(ctx, tx, current)
		if l.left > 0 {
			l.left--
			return nil, errors.Join(store.ErrConflict, err)
		}
		return c, err
	})
}

// conflictRun calls an operation whose transactions have a number of conflicts, and
// returns how often its function ran.
func conflictRun(t *testing.T, losses int, o semel.OperationOptions[string], fnErr error) (runs int, retried int, err error) {
	t.Helper()
	eyes := new(seen)
	engine, err := semel.New(&conflictingStore{Store: memory.New(memory.Options{}), left: losses}, semel.Options{Survive: store.NoFailure, Observer: eyes})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	defer func() { _ = engine.Close(context.Background()) }()
	op := semel.Define("lose", o)
	_, _, err = semel.DoTx(t.Context(), engine, op.Call(semel.Shared(), "k", "in"), func(context.Context, *memory.Tx) (int, error) {
		runs++
		return runs, fnErr
	})
	return runs, eyes.count(semel.EventRetried), err
}

func TestConflictingTransactionRunsAgain(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]semel.OperationOptions[string]{
		"inline": {},
		"leased": {Policy: semel.Atomic(), Lease: lease},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs, retried, err := conflictRun(t, 3, o, nil)
				if runs != 4 || retried != 3 || err != nil {
					t.Errorf("runs %d, retried %d, %v, want 4, 3 and no error", runs, retried, err)
				}
			})
		})
	}
}

// An outcome that a function derives from reads in an aborted transaction is not
// stored, because a retry may read something else.
func TestOutcomeOfAConflictingTransactionIsNotStored(t *testing.T) {
	t.Parallel()
	final := semel.Final(errors.New("no money"))
	for name, o := range map[string]semel.OperationOptions[string]{
		"inline":      {},
		"inline kept": {OnError: semel.Keep},
		"leased":      {Policy: semel.Atomic(), Lease: lease, OnError: semel.Keep},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs, _, err := conflictRun(t, 1000, o, final)
				if runs < 2 || !errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("runs %d, %v, want some, and that the store lost", runs, err)
				}
				if v := semel.VerdictOf(err); v != store.NotCommitted {
					t.Errorf("verdict %v, want NotCommitted", v)
				}
				if _, kept := errors.AsType[*semel.Failure](err); kept {
					t.Errorf("the failure is kept: %v", err)
				}
			})
		})
	}
}
