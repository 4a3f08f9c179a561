package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// errEndedItself is what a store says when a function has committed the
// transaction that was only lent to it.
var errEndedItself = errors.New("the function ended the transaction")

// errAfterwards is what a function returns that has committed and then failed.
var errAfterwards = errors.New("afterwards")

// selfCommittingStore is a store under functions that commit by themselves: their
// writes are there, and the last change was never made.
type selfCommittingStore struct{ *memory.Store }

func (s selfCommittingStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	ran := false
	verdict, err := s.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		change, err := run(ctx, tx, current)
		if ran = change != nil || errors.Is(err, errAfterwards) || errors.Is(err, errEndedItself); !ran {
			return nil, err
		}
		return nil, nil
	})
	if ran && err == nil {
		return store.Committed, errEndedItself
	}
	return verdict, err
}

// TestHandlerCommitsItsTransaction: the caller learns what happened, and the
// function never runs again, although its effect was committed without the record.
func TestHandlerCommitsItsTransaction(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]semel.OperationOptions[int]{
		"inline": {}, "leased": {Policy: semel.Atomic(), Lease: 30e9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := check.Must(semel.New(selfCommittingStore{memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure}))(t)
			call := semel.Define("op", policy).Call(semel.ScopeOf("u"), "k", 1)
			for i := range 3 {
				got, replayed, err := semel.DoTx(t.Context(), engine, call, func(_ context.Context, tx *memory.Tx) (int, error) {
					return i + 40, tx.Put("effect", []byte{1})
				})
				if got != 40 || replayed != (i > 0) || err != nil {
					t.Errorf("call %d returned %d, %v, %v; want 40, %v, nil", i, got, replayed, err, i > 0)
				}
			}
		})
	}
}

// TestHandlerCommitsItsTransactionAndFails: the effect has happened. The caller
// gets an error that says so, and later callers learn that it succeeded and that
// the result is not available.
func TestHandlerCommitsItsTransactionAndFails(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]semel.OperationOptions[int]{
		"inline": {}, "leased": {Policy: semel.Atomic(), Lease: 30e9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := check.Must(semel.New(selfCommittingStore{memory.New(memory.Options{})}, semel.Options{Survive: store.NoFailure}))(t)
			call := semel.Define("op", policy).Call(semel.ScopeOf("u"), "k", 1)
			runs := 0
			ask := func() error {
				_, _, err := semel.DoTx(t.Context(), engine, call, func(context.Context, *memory.Tx) (int, error) {
					runs++
					return 0, errAfterwards
				})
				return err
			}
			if err := ask(); !errors.Is(err, errAfterwards) || semel.VerdictOf(err) != store.Committed {
				t.Errorf("the first call returned %v, verdict %v; want its own error, Committed", err, semel.VerdictOf(err))
			}
			check.ErrorIs(t, ask(), semel.ErrResultUnavailable, "the second call returned")
			check.Equal(t, runs, 1, "the function ran")
		})
	}
}
