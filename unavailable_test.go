package semel_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// failingBeginStore is a store that cannot commit, or not even begin.
type failingBeginStore struct {
	*memory.Store

	begins bool
}

var errNoSpace = errors.New("no space left")

func (s failingBeginStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if !s.begins {
		return store.NotCommitted, errNoSpace
	}
	verdict, err := s.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
		if _, err := run(ctx, tx, current); err != nil {
			return nil, err
		}
		return nil, errNoSpace
	})
	return verdict, err
}

// TestTransactionThatCannotBeginIsUnavailable: the store has failed, and not the
// operation. Nothing was done, and the same key may be tried again.
func TestTransactionThatCannotBeginIsUnavailable(t *testing.T) {
	t.Parallel()
	for txMode, options := range map[string]semel.OperationOptions[int]{
		"inline": {OnError: semel.Keep}, "leased": {Policy: semel.Atomic(), Lease: 30e9, OnError: semel.Keep},
	} {
		for step, begins := range map[string]bool{"begin": false, "commit": true} {
			t.Run(txMode+"/"+step, func(t *testing.T) {
				t.Parallel()
				records := memory.New(memory.Options{})
				call := semel.Define("op", options).Call(semel.ScopeOf("u"), "k", 1)
				_, _, err := semel.DoTx(t.Context(), engineOver(t, failingBeginStore{records, begins}), call, one)
				if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, errNoSpace) || errors.Is(err, semel.ErrOutcomeUnknown) {
					t.Errorf("DoTx returned %v, want ErrUnavailable and the store's reason", err)
				}
				if semel.RetryAfter(err) == 0 {
					t.Error("RetryAfter is zero")
				}
				got, _, err := semel.DoTx(t.Context(), engineOver(t, records), call, one)
				if got != 1 || err != nil {
					t.Errorf("the next DoTx returned %d, %v; want 1", got, err)
				}
			})
		}
	}
}

func one(context.Context, *memory.Tx) (int, error) { return 1, nil }

func engineOver(t *testing.T, s store.TxStore[*memory.Tx]) *semel.Engine[*memory.Tx] {
	t.Helper()
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}
