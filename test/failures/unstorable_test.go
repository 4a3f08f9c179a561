package failures_test

import (
	"context"
	"errors"
	"testing"

	"github.com/semelgo/semel"
)

// A result that cannot be encoded is a success all the same.
func unmarshalable[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	call := semel.Define(w.op("unmarshalable"), w.operation(by)).Call(semel.ScopeOf("ann"), "k", "in")
	run := func() (func(), bool, error) {
		return do(t.Context(), w, w.runner, call, func(_ context.Context, effect func(string) error) (func(), error) {
			return func() {}, effect("ann/k")
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
