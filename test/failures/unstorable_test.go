package failures_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
)

// A result that cannot be encoded is a success all the same.
func unmarshalable[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	o := semel.OperationOptions[string]{}
	if by == leased {
		o.Policy, o.Lease = semel.Atomic(), w.Lease
	}
	call := semel.Define(w.op("unmarshalable"), o).Call(semel.ScopeOf("ann"), "k", "in")
	run := func() (func(), bool, error) {
		return semel.DoTx(t.Context(), w.engine, call, func(ctx context.Context, tx Tx) (func(), error) {
			return func() {}, w.effect(ctx, tx, "ann/k")
		})
	}
	if v, replayed, err := run(); v == nil || replayed || err != nil {
		t.Errorf("the first call = %v, %v, want its own value", replayed, err)
	}
	for range 2 {
		if _, _, err := run(); !errors.Is(err, semel.ErrResultUnavailable) {
			t.Errorf("the repeat: %v, want ErrResultUnavailable", err)
		}
	}
	w.wantEffects(t, "ann/k", 1)
}
