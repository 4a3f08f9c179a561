package boundary_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

// innerCallsByLeases are inner calls that end because of a lease, a context, an engine
// or a panic.
func innerCallsByLeases() map[string]innerCall {
	return map[string]innerCall{
		"lease lost": {
			prepare:   doCall(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", semel.ErrLeaseLost, errInner)))),
			wantError: semel.ErrLeaseLost, wrapsErrInner: true,
		},
		"taken over": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				op := semel.Define("inner", plan{Policy: semel.AtLeastOnce()})
				return func(ctx context.Context) error {
					c := op.Call(caller, "inner", "in")
					_, _, err := semel.Do(ctx, w, c, func(context.Context) (string, error) {
						w.ahead.Add(int64(time.Minute))
						a, _, err := adapter.Begin(context.WithoutCancel(ctx), w.process(t, w.mem), c)
						check.NoError(t, err, "take over")
						t.Cleanup(a.Abandon)
						return "", semel.NotCommitted(errInner)
					})
					return err
				}
			}, wantError: semel.ErrInProgress,
		},
		"cancelled before": {
			prepare: func(_ *testing.T, w *fixture) func(context.Context) error {
				return func(ctx context.Context) error {
					ctx, cancel := context.WithCancel(ctx)
					cancel()
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, wantError: context.Canceled, ofContext: true,
		},
		"cancelled": {
			prepare:   doCall(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", context.Canceled, errInner)))),
			wantError: context.Canceled, wrapsErrInner: true, ofContext: true,
		},
		"closed": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				other := w.process(t, memory.New(memory.Options{}))
				_ = other.Close(t.Context())
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, other, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, wantError: semel.ErrClosed,
		},
		"invalid": {
			prepare: func(_ *testing.T, w *fixture) func(context.Context) error {
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "", "in"), returns(nil))
					return err
				}
			}, wantError: semel.ErrInvalid,
		},
		"panic": {
			prepare: doCall(plan{}, func(context.Context) (string, error) { panic(errInner) }), panics: true,
		},
	}
}
