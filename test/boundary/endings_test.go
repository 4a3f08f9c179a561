package boundary_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// errInner is the user's own error in the function of the inner operation.
var errInner = errors.New("the inner function's own error")

// ending is one way in which the call of an inner operation ends.
type ending struct {
	// prepare makes the records that the inner call finds, and returns the call.
	prepare func(t *testing.T, w *world) func(ctx context.Context) error
	// sees is what the function that made the call must find in its error. Nil: there
	// is no error.
	sees error
	// own says that the call's error contains errInner, so that the outer one does.
	own bool
	// ofContext says that the call ended because a context did.
	ofContext bool
	// panics says that the call panics.
	panics bool
}

// function is the function of an inner operation.
type function = func(ctx context.Context) (string, error)

func returns(err error) function {
	return func(context.Context) (string, error) { return "", err }
}

// does is an inner call by Do.
func does(o plan, fn function) func(*testing.T, *world) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(_ *testing.T, w *world) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), fn)
			return err
		}
	}
}

// again is an inner call by Do of a key that was called before, with another function.
func again(o plan, before, now function) func(*testing.T, *world) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(t *testing.T, w *world) func(context.Context) error {
		t.Helper()
		_, _, _ = semel.Do(t.Context(), w, op.Call(caller, "inner", "in"), before)
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), now)
			return err
		}
	}
}

// afterCrash is an inner call by Do after an attempt whose process died.
func afterCrash(o plan, fn function) func(*testing.T, *world) func(context.Context) error {
	op := semel.Define("inner", o)
	return func(t *testing.T, w *world) func(context.Context) error {
		t.Helper()
		w.crash(t, op.Call(caller, "inner", "in"))
		return func(ctx context.Context) error {
			_, _, err := semel.Do(ctx, w, op.Call(caller, "inner", "in"), fn)
			return err
		}
	}
}

// doesTx is an inner call by DoTx in another database, whose transactions end with err.
func doesTx(verdict store.Verdict, broken error, fn function) func(*testing.T, *world) func(context.Context) error {
	op := semel.Define("inner", plan{})
	return func(t *testing.T, w *world) func(context.Context) error {
		t.Helper()
		var s store.TxStore[*memory.Tx] = memory.New(memory.Options{})
		if broken != nil {
			s = &brokenStore{memory.New(memory.Options{}), verdict, broken}
		}
		other := w.process(t, s)
		return func(ctx context.Context) error {
			_, _, err := semel.DoTx(ctx, other, op.Call(caller, "inner", "in"), func(ctx context.Context, _ *memory.Tx) (string, error) { return fn(ctx) })
			return err
		}
	}
}

// unanswered is an inner call on a store that does not answer.
func unanswered(call func(ctx context.Context, e *engine) error) func(*testing.T, *world) func(context.Context) error {
	return func(t *testing.T, w *world) func(context.Context) error {
		t.Helper()
		s := semeltest.NewFaulty[*memory.Tx](memory.New(memory.Options{}), func(semeltest.Call) semeltest.Fault { return semeltest.Refuse })
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

// endings are the ways in which the call of an inner operation can end.
func endings() map[string]ending {
	all := make(map[string]ending)
	for _, some := range []map[string]ending{endingsByMarks(), endingsByAttempts(), refusals(), endingsByStores(), endingsByLeases()} {
		maps.Copy(all, some)
	}
	return all
}

// endingsByMarks are those that the inner function chooses.
func endingsByMarks() map[string]ending {
	return map[string]ending{
		"success": {prepare: does(plan{}, returns(nil))},
		"NotCommitted": {
			prepare: does(plan{}, returns(semel.NotCommitted(errInner))), sees: errInner, own: true,
		},
		"NotCommitted of a transaction": {
			prepare: doesTx(0, nil, returns(errInner)), sees: errInner, own: true,
		},
		"Final": {
			prepare: does(plan{}, returns(semel.Final(errInner))), sees: failed{},
		},
		"failure that is replayed": {
			prepare: again(plan{}, returns(semel.Final(errInner)), nil), sees: failed{},
		},
		"Snooze": {
			prepare: does(plan{Retry: retry(semel.Retry{})}, returns(semel.Snooze(never))), sees: attempted{},
		},
		"RetryIn": {
			prepare: does(plan{Retry: retry(semel.Retry{})}, returns(semel.NotCommitted(semel.RetryIn(errInner, never)))), sees: errInner, own: true,
		},
		"RetryIn without Retry": {
			prepare: does(plan{}, returns(semel.NotCommitted(semel.RetryIn(errInner, never)))), sees: errInner, own: true,
		},
	}
}

// endingsByAttempts are those that the inner attempts and what is known of them lead to.
func endingsByAttempts() map[string]ending {
	nothing := func(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil }
	return map[string]ending{
		"too many errors": {
			prepare: does(plan{Retry: retry(semel.Retry{MaxErrors: 1})}, returns(semel.NotCommitted(errInner))), sees: failed{},
		},
		"too many crashes": {
			prepare: afterCrash(plan{Policy: semel.AtLeastOnce(), Retry: retry(semel.Retry{MaxCrashes: 1})}, nil), sees: attempted{},
		},
		"fence cannot be raised": {
			prepare: afterCrash(plan{Policy: semel.Fenced(func(context.Context, semel.Scope, string, uint32) error {
				return semel.NotCommitted(errInner)
			}, nothing)}, nil),
			sees: errInner, own: true,
		},
		"unknown": {
			prepare: does(plan{}, returns(errInner)), sees: semel.ErrOutcomeUnknown, own: true,
		},
		"unknown, runs again": {
			prepare: does(plan{Policy: semel.AtLeastOnce()}, returns(errInner)), sees: semel.ErrOutcomeUnknown, own: true,
		},
		"in doubt": {
			prepare: again(plan{}, returns(errInner), nil), sees: semel.ErrInDoubt,
		},
		"in doubt, probe fails": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				var fails error // of this test alone: others run at the same time
				return again(plan{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) {
					return nil, false, fails
				})}, func(context.Context) (string, error) {
					fails = semel.Final(errInner)
					return "", errInner
				}, nil)(t, w)
			},
			sees: semel.ErrInDoubt, own: true,
		},
	}
}

// refusals are the answers to calls whose function is not run.
func refusals() map[string]ending {
	return map[string]ending{
		"mismatch": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				_, _, _ = semel.Do(t.Context(), w, innerOp.Call(caller, "inner", "other"), returns(nil))
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, sees: semel.ErrMismatch,
		},
		"in progress": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				w.crash(t, innerOp.Call(caller, "inner", "in"))
				w.skip.Store(0)
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, sees: semel.ErrInProgress,
		},
		"key expired": {
			prepare: func(_ *testing.T, w *world) func(context.Context) error {
				op := semel.Define("inner", plan{KeyTime: semel.UUIDv7Time})
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, op.Call(caller, "00000000-0001-7000-8000-000000000000", "in"), returns(nil))
					return err
				}
			}, sees: semel.ErrKeyExpired,
		},
		"result unavailable": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				fn := func(context.Context) (semel.Tombstone, error) { return "streamed", nil }
				_, _, _ = semel.Do(t.Context(), w, innerOp.Call(caller, "inner", "in"), fn)
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), fn)
					return err
				}
			}, sees: semel.ErrResultUnavailable,
		},
	}
}

// endingsByStores are those that a store or a transaction leads to.
func endingsByStores() map[string]ending {
	return map[string]ending{
		"unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				_, _, err := semel.Do(ctx, e, innerOp.Call(caller, "inner", "in"), returns(nil))
				return err
			}), sees: semel.ErrUnavailable,
		},
		"Enqueue unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				waiting := semel.Define("inner", plan{Retry: &semel.Retry{}})
				_, err := semel.Enqueue(ctx, e, waiting.Call(caller, "inner", "in"), semel.EnqueueOptions{})
				return err
			}), sees: semel.ErrUnavailable,
		},
		"Get unavailable": {
			prepare: unanswered(func(ctx context.Context, e *engine) error {
				_, _, err := e.Get(ctx, "inner", caller, "inner")
				return err
			}), sees: semel.ErrUnavailable,
		},
		"conflict":     {prepare: doesTx(store.NotCommitted, store.ErrConflict, returns(nil)), sees: semel.ErrUnavailable},
		"interrupted":  {prepare: doesTx(store.NotCommitted, store.ErrInterrupted, returns(nil)), sees: semel.ErrUnavailable},
		"no partition": {prepare: doesTx(store.NotCommitted, store.ErrNoPartition, returns(nil)), sees: semel.ErrUnavailable},
		"superseded":   {prepare: doesTx(store.NotCommitted, store.ErrSuperseded, returns(nil)), sees: semel.ErrUnavailable},
		"ended by its function": {
			prepare: doesTx(store.Unknown, store.ErrTxEndedByHandler, returns(nil)), sees: semel.ErrOutcomeUnknown,
		},
		"conflict that the function reports": {
			prepare: does(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", store.ErrConflict, errInner)))), sees: errInner, own: true,
		},
	}
}

// endingsByLeases are those that the end of a lease, a context or an engine leads to, and
// a panic.
func endingsByLeases() map[string]ending {
	return map[string]ending{
		"lease lost": {
			prepare: does(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", semel.ErrLeaseLost, errInner)))),
			sees:    semel.ErrLeaseLost, own: true,
		},
		"taken over": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				op := semel.Define("inner", plan{Policy: semel.AtLeastOnce()})
				return func(ctx context.Context) error {
					c := op.Call(caller, "inner", "in")
					_, _, err := semel.Do(ctx, w, c, func(context.Context) (string, error) {
						w.skip.Add(int64(time.Minute))
						a, _, err := semel.Begin(context.WithoutCancel(ctx), w.process(t, w.mem), c)
						if err != nil {
							t.Errorf("take over: %v", err)
						}
						t.Cleanup(a.Abandon)
						return "", semel.NotCommitted(errInner)
					})
					return err
				}
			}, sees: semel.ErrInProgress,
		},
		"cancelled before": {
			prepare: func(_ *testing.T, w *world) func(context.Context) error {
				return func(ctx context.Context) error {
					ctx, cancel := context.WithCancel(ctx)
					cancel()
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, sees: context.Canceled, ofContext: true,
		},
		"cancelled": {
			prepare: does(plan{}, returns(semel.NotCommitted(fmt.Errorf("%w: %w", context.Canceled, errInner)))),
			sees:    context.Canceled, own: true, ofContext: true,
		},
		"closed": {
			prepare: func(t *testing.T, w *world) func(context.Context) error {
				t.Helper()
				other := w.process(t, memory.New(memory.Options{}))
				_ = other.Close(t.Context())
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, other, innerOp.Call(caller, "inner", "in"), returns(nil))
					return err
				}
			}, sees: semel.ErrClosed,
		},
		"invalid": {
			prepare: func(_ *testing.T, w *world) func(context.Context) error {
				return func(ctx context.Context) error {
					_, _, err := semel.Do(ctx, w, innerOp.Call(caller, "", "in"), returns(nil))
					return err
				}
			}, sees: semel.ErrInvalid,
		},
		"panic": {
			prepare: does(plan{}, func(context.Context) (string, error) { panic(errInner) }), panics: true,
		},
	}
}

// failed is found in an error that has a *semel.Failure, and attempted in one that has a
// *semel.AttemptError.
type (
	failed    struct{ error }
	attempted struct{ error }
)

// wantSeen checks that the function that made the inner call can inspect its error.
func (e ending) wantSeen(t *testing.T, err error) {
	t.Helper()
	found := false
	switch e.sees.(type) { //nolint:errorlint // it says what to look for
	case nil:
		found = err == nil
	case failed:
		_, found = errors.AsType[*semel.Failure](err)
	case attempted:
		_, found = errors.AsType[*semel.AttemptError](err)
	default:
		found = errors.Is(err, e.sees)
	}
	if !found {
		t.Errorf("the inner call returned %v, want an error with %T %[2]v in it", err, e.sees)
	}
}
