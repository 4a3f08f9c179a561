package boundary_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// errInner is the user's own error in the function of the inner operation.
var errInner = errors.New("the inner function's own error")

// innerCall is one way in which the call of an inner operation ends.
type innerCall struct {
	// prepare makes the records that the inner call finds, and returns the call.
	prepare func(t *testing.T, w *fixture) func(ctx context.Context) error
	// wantError is the error that the caller's function must find. Nil: there is no
	// error.
	wantError error
	// wrapsErrInner is set if the call's error contains errInner, and the outer
	// error must too.
	wrapsErrInner bool
	// ofContext is set if the call ended because a context ended.
	ofContext bool
	// panics is set if the call panics.
	panics bool
}

// function is the function of an inner operation.
type function = func(ctx context.Context) (string, error)

func returns(err error) function {
	return func(context.Context) (string, error) { return "", err }
}

// doCall is an inner call by Do.
func doCall(o plan, fn function) func(*testing.T, *fixture) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(_ *testing.T, w *fixture) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), fn)
			return err
		}
	}
}

// secondCall is an inner call by Do of a key that was called before, with another
// function.
func secondCall(o plan, before, now function) func(*testing.T, *fixture) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(t *testing.T, w *fixture) func(context.Context) error {
		t.Helper()
		_, _, _ = semel.Do(t.Context(), w, op.Call(caller, "inner", "in"), before)
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), now)
			return err
		}
	}
}

// afterCrash is an inner call by Do after an attempt whose process died.
func afterCrash(o plan, fn function) func(*testing.T, *fixture) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(t *testing.T, w *fixture) func(context.Context) error {
		t.Helper()
		w.crash(t, op.Call(caller, "inner", "in"))
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), fn)
			return err
		}
	}
}

// doTxCall is an inner call by DoTx in another database, with that fault of its transactions.
func doTxCall(fault storetest.Fault, fn function) func(*testing.T, *fixture) func(context.Context) error {
	op := semel.Define("inner", plan{})
	return func(t *testing.T, w *fixture) func(context.Context) error {
		t.Helper()
		other := w.process(t, storetest.NewFaultyTx[*memory.Tx](memory.New(memory.Options{}), func(c storetest.Call) storetest.Fault {
			if c.Method == "Atomic" {
				return fault
			}
			return storetest.Fault{}
		}))
		return func(ctx context.Context) error {
			_, _, err := semel.DoTx(ctx, other, op.Call(caller, "inner", "in"), func(ctx context.Context, _ *memory.Tx) (string, error) { return fn(ctx) })
			return err
		}
	}
}

// unanswered is an inner call on a store that does not answer.
func unanswered(call func(ctx context.Context, e *engine) error) func(*testing.T, *fixture) func(context.Context) error {
	return func(t *testing.T, w *fixture) func(context.Context) error {
		t.Helper()
		s := storetest.NewFaultyTx[*memory.Tx](memory.New(memory.Options{}), func(storetest.Call) storetest.Fault { return storetest.Refuse() })
		other := w.process(t, s)
		return func(ctx context.Context) error { return call(ctx, other) }
	}
}

var innerOp = semel.Define("inner", plan{})

const never = time.Hour // a delay that the outer operation must not take over

func retry(r semel.Retry) *semel.Retry {
	r.Redelivered = true
	return &r
}

// innerCalls are all the ways in which the call of an inner operation can end.
func innerCalls() map[string]innerCall {
	all := make(map[string]innerCall)
	for _, some := range []map[string]innerCall{innerCallsByMarks(), innerCallsByAttempts(), rejectedCalls(), innerCallsByStores(), innerCallsByLeases()} {
		maps.Copy(all, some)
	}
	return all
}

// innerCallsByMarks end as the inner function marks its error.
func innerCallsByMarks() map[string]innerCall {
	return map[string]innerCall{
		"success": {prepare: doCall(plan{}, returns(nil))},
		"NotCommitted": {
			prepare: doCall(plan{}, returns(semel.NotCommitted(errInner))), wantError: errInner, wrapsErrInner: true,
		},
		"NotCommitted of a transaction": {
			prepare: doTxCall(storetest.Fault{}, returns(errInner)), wantError: errInner, wrapsErrInner: true,
		},
		"Final": {
			prepare: doCall(plan{}, returns(semel.Final(errInner))), wantError: withFailureError{},
		},
		"failure that is replayed": {
			prepare: secondCall(plan{}, returns(semel.Final(errInner)), nil), wantError: withFailureError{},
		},
		"Snooze": {
			prepare: doCall(plan{Retry: retry(semel.Retry{})}, returns(semel.Snooze(never))), wantError: withAttemptError{},
		},
		"RetryIn": {
			prepare: doCall(plan{Retry: retry(semel.Retry{})}, returns(semel.NotCommitted(semel.RetryIn(errInner, never)))), wantError: errInner, wrapsErrInner: true,
		},
		"RetryIn without Retry": {
			prepare: doCall(plan{}, returns(semel.NotCommitted(semel.RetryIn(errInner, never)))), wantError: errInner, wrapsErrInner: true,
		},
	}
}

// innerCallsByAttempts end with what is known of the inner attempts.
func innerCallsByAttempts() map[string]innerCall {
	nothing := func(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil }
	return map[string]innerCall{
		"too many errors": {
			prepare: doCall(plan{Retry: retry(semel.Retry{MaxErrors: 1})}, returns(semel.NotCommitted(errInner))), wantError: withFailureError{},
		},
		"too many crashes": {
			prepare: afterCrash(plan{Policy: semel.AtLeastOnce(), Retry: retry(semel.Retry{MaxCrashes: 1})}, nil), wantError: withAttemptError{},
		},
		"fence cannot be raised": {
			prepare: afterCrash(plan{Policy: semel.Fenced(func(context.Context, semel.Scope, string, uint32) error {
				return semel.NotCommitted(errInner)
			}, nothing)}, nil),
			wantError: errInner, wrapsErrInner: true,
		},
		"unknown": {
			prepare: doCall(plan{}, returns(errInner)), wantError: semel.ErrOutcomeUnknown, wrapsErrInner: true,
		},
		"unknown, runs again": {
			prepare: doCall(plan{Policy: semel.AtLeastOnce()}, returns(errInner)), wantError: semel.ErrOutcomeUnknown, wrapsErrInner: true,
		},
		"in doubt": {
			prepare: secondCall(plan{}, returns(errInner), nil), wantError: semel.ErrInDoubt,
		},
		"in doubt, probe fails": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				var fails error // used by this test only: others run at the same time
				return secondCall(plan{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
					return nil, false, fails
				})}, func(context.Context) (string, error) {
					fails = semel.Final(errInner)
					return "", errInner
				}, nil)(t, w)
			},
			wantError: semel.ErrInDoubt, wrapsErrInner: true,
		},
	}
}

// rejectedCalls are calls whose function does not run.
func rejectedCalls() map[string]innerCall {
	return map[string]innerCall{
		"mismatch": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				_, _, _ = semel.Do(t.Context(), w, innerOp.Call(caller, "inner", "other"), returns(nil))
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, wantError: semel.ErrMismatch,
		},
		"in progress": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				w.crash(t, innerOp.Call(caller, "inner", "in"))
				w.ahead.Store(0)
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, wantError: semel.ErrInProgress,
		},
		"key expired": {
			prepare: func(_ *testing.T, w *fixture) func(context.Context) error {
				op := semel.Define("inner", plan{KeyTime: semel.UUIDv7Time})
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, op.Call(caller, "00000000-0001-7000-8000-000000000000", "in"), returns(nil))
					return err
				}
			}, wantError: semel.ErrKeyExpired,
		},
		"result unavailable": {
			prepare: func(t *testing.T, w *fixture) func(context.Context) error {
				t.Helper()
				fn := func(context.Context) (adapter.Tombstone, error) { return "streamed", nil }
				_, _, _ = semel.Do(t.Context(), w, innerOp.Call(caller, "inner", "in"), fn)
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), fn)
					return err
				}
			}, wantError: semel.ErrResultUnavailable,
		},
	}
}

// innerCallsByStores end with an error of a store or a transaction.
func innerCallsByStores() map[string]innerCall {
	return map[string]innerCall{
		"unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				_, _, err := semel.Do(ctx, e, innerOp.Call(caller, "inner", "in"), returns(nil))
				return err
			}), wantError: semel.ErrUnavailable,
		},
		"Enqueue unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				waiting := semel.Define("inner", plan{Retry: &semel.Retry{}})
				_, err := semel.Enqueue(ctx, e, waiting.Call(caller, "inner", "in"), semel.EnqueueOptions{})
				return err
			}), wantError: semel.ErrUnavailable,
		},
		"Get unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				_, _, err := admin.Get(ctx, e, "inner", caller, "inner")
				return err
			}), wantError: semel.ErrUnavailable,
		},
		"conflict":     {prepare: doTxCall(storetest.Fault{Rollback: store.ErrConflict}, returns(nil)), wantError: semel.ErrUnavailable},
		"interrupted":  {prepare: doTxCall(storetest.Fault{Rollback: store.ErrInterrupted}, returns(nil)), wantError: semel.ErrUnavailable},
		"no partition": {prepare: doTxCall(storetest.Fault{Rollback: store.ErrNoPartition}, returns(nil)), wantError: semel.ErrUnavailable},
		"superseded":   {prepare: doTxCall(storetest.Fault{Rollback: store.ErrSuperseded}, returns(nil)), wantError: semel.ErrUnavailable},
		"ended by its function": {
			prepare: doTxCall(storetest.Fault{Rollback: store.ErrTxEndedByHandler, After: store.ErrTxEndedByHandler}, returns(nil)), wantError: semel.ErrOutcomeUnknown,
		},
		"conflict that the function reports": {
			prepare: doCall(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", store.ErrConflict, errInner)))), wantError: errInner, wrapsErrInner: true,
		},
	}
}

// failed is found in an error that has a *semel.Failure, and attempted in one that has a
// *semel.AttemptError.
type (
	withFailureError struct{ error }
	withAttemptError struct{ error }
)

// wantInspectable checks that the function that made the inner call can inspect its error.
func (e innerCall) wantInspectable(t *testing.T, err error) {
	t.Helper()
	contextValues := false
	switch e.wantError.(type) { //nolint:errorlint // it says what to look for
	case nil:
		contextValues = err == nil
	case withFailureError:
		_, contextValues = errtype.Find[*semel.Failure](err)
	case withAttemptError:
		_, contextValues = errtype.Find[*semel.AttemptError](err)
	default:
		contextValues = errors.Is(err, e.wantError)
	}
	if !contextValues {
		t.Errorf("the inner call returned %v, want an error with %T %[2]v in it", err, e.wantError)
	}
}
