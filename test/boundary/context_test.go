package boundary_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// innerModes are the ways to run an inner operation whose function receives a
// context.
func innerModes() map[string]func(ctx context.Context, e *engine, fn func(ctx context.Context)) error {
	op := func(o plan) semel.Call { return semel.Define("inner", o).Call(caller, "inner", "in") }
	return map[string]func(ctx context.Context, e *engine, fn func(ctx context.Context)) error{
		"Do": func(ctx context.Context, e *engine, fn func(ctx context.Context)) error {
			_, _, err := semel.Do(ctx, e, op(plan{}), func(ctx context.Context) (string, error) { fn(ctx); return "", nil })
			return err
		},
		"DoTx": func(ctx context.Context, e *engine, fn func(ctx context.Context)) error {
			_, _, err := semel.DoTx(ctx, e, op(plan{}), func(ctx context.Context, _ *memory.Tx) (string, error) { fn(ctx); return "", nil })
			return err
		},
		"DoTx, leased": func(ctx context.Context, e *engine, fn func(ctx context.Context)) error {
			_, _, err := semel.DoTx(ctx, e, op(plan{Policy: semel.Atomic(), Lease: lease}), func(ctx context.Context, _ *memory.Tx) (string, error) { fn(ctx); return "", nil })
			return err
		},
		"DoBatch": func(ctx context.Context, e *engine, fn func(ctx context.Context)) error {
			_, _, err := semel.DoBatch(ctx, e, op(plan{}), func(ctx context.Context) (string, memory.Batch, error) { fn(ctx); return "", nil, nil })
			return err
		},
	}
}

// contextValues are the values that a function finds in its context.
type contextValues struct {
	tx, attempt bool
	key         string
}

func readContext(ctx context.Context, e *engine) (f contextValues) {
	_, f.tx = semel.TxOf(ctx, e)
	var a *semel.Attempt
	if a, f.attempt = semel.AttemptOf(ctx); f.attempt && a.Call().Operation() != "inner" {
		f.key = "of another attempt"
		return f
	}
	f.key, _ = semel.ChildKey(ctx, "child")
	return f
}

// TestContextIsOfTheInnermostOperation: inside an inner operation a function finds that
// operation's transaction, attempt and child keys, and nothing of the outer one.
func TestContextIsOfTheInnermostOperation(t *testing.T) {
	t.Parallel()
	for outerName, by := range engineModes() {
		for innerName, run := range innerModes() {
			t.Run(outerName+"/"+innerName, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					alone := newFixture(t)
					var want contextValues
					check.Require(t, run(t.Context(), alone.engine, func(ctx context.Context) { want = readContext(ctx, alone.engine) }))
					w := newFixture(t)
					outer := semel.Define("outer", by.plan).Call(caller, "outer", "in")
					err := by.run(t.Context(), w, outer, func(ctx context.Context, _ func()) error {
						_, inTx := semel.TxOf(ctx, w.engine)
						if inTx && innerName != "Do" {
							return nil // a second transaction of the engine is rejected
						}
						var got, foreign contextValues
						err := run(ctx, w.engine, func(ctx context.Context) { got = readContext(ctx, w.engine) })
						if got != want {
							t.Errorf("in the inner operation the context has %+v, want %+v", got, want)
						}
						other := newFixture(t)
						_ = run(ctx, other.engine, func(ctx context.Context) { foreign = readContext(ctx, w.engine) })
						if foreign.tx {
							t.Error("an inner operation of another engine finds the outer transaction")
						}
						return err
					})
					check.NoError(t, err, "the outer call")
				})
			})
		}
	}
}

// TestTransactionAroundAnInnerOperationIsStillSeen: a second transaction of the same
// engine, which could wait for the first for ever, is refused also when another operation
// is between the two.
func TestTransactionAroundAnInnerOperationIsStillSeen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newFixture(t)
		op := func(name string) semel.Call { return semel.Define(name, plan{}).Call(caller, "k", "in") }
		_, _, err := semel.DoTx(t.Context(), w.engine, op("outer"), func(ctx context.Context, _ *memory.Tx) (string, error) {
			return "", innerModes()["Do"](ctx, w.engine, func(ctx context.Context) {
				_, _, err := semel.DoTx(ctx, w.engine, op("innermost"), func(context.Context, *memory.Tx) (string, error) {
					t.Error("the innermost operation ran")
					return "", nil
				})
				check.ErrorIs(t, err, semel.ErrInvalid, "DoTx within Do within DoTx")
			})
		})
		check.NoError(t, err, "the outer call")
	})
}

// TestInTxOfTheInnermostAttempt: InTx in an inner operation never ends the outer attempt.
func TestInTxOfTheInnermostAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, other := newFixture(t), newFixture(t)
		errOuter := errors.New("the outer function's own error")
		outer := semel.Define("outer", plan{Policy: semel.Atomic()}).Call(caller, "outer", "in")
		_, _, err := semel.Do(t.Context(), w, outer, func(ctx context.Context) (string, error) {
			err := innerModes()["DoTx"](ctx, other.engine, func(ctx context.Context) {
				_, err := semel.InTx(ctx, w.engine, func(context.Context, *memory.Tx) (string, error) { return "", nil })
				check.ErrorIs(t, err, semel.ErrInvalid, "InTx in an inner operation")
			})
			return "", errors.Join(err, semel.NotCommitted(errOuter))
		})
		if !errors.Is(err, errOuter) || w.record(t, outer).State != store.Pending {
			t.Errorf("got %v and state %v, want the outer function's error and Pending", err, w.record(t, outer).State)
		}
	})
}

// TestWaitLimitIsOfTheInnermostOperation: the end of a caller's wait context ends
// the wait of its own operation, and not that of inner operations. A batch waits
// for a connection after its function has built it, and is then not sent.
func TestWaitLimitIsOfTheInnermostOperation(t *testing.T) {
	t.Parallel()
	for name, by := range engineModes() {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newFixture(t)
				patience, hangUp := context.WithCancel(t.Context())
				outer := semel.Define("outer", by.plan).Call(caller, "outer", "in")
				err := by.run(adapter.WithWaitContext(t.Context(), patience), w, outer, func(ctx context.Context, _ func()) error {
					hangUp()
					synctest.Wait() // goroutines that the canceled caller started have ended
					inner := innerModes()["Do"](ctx, w.engine, func(context.Context) {})
					check.NoError(t, inner, "the inner call")
					return inner
				})
				if batch := strings.HasPrefix(name, "DoBatch"); batch != errors.Is(err, semel.ErrUnavailable) || !batch && err != nil {
					t.Errorf("the outer call: %v", err)
				}
			})
		})
	}
}

// TestCancellationIsOfOneAttempt: when a task is cancelled while its function calls
// another operation, the key of that operation is not cancelled.
func TestCancellationIsOfOneAttempt(t *testing.T) {
	t.Parallel()
	for name, retries := range map[string]*semel.Retry{"a caller's key": nil, "a task's key": retry(semel.Retry{MaxErrors: 1})} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newFixture(t)
				outerOp := semel.Define("outer", plan{Retry: &semel.Retry{}})
				worker := w.process(t, w.mem, outerOp)
				outer := outerOp.Call(caller, "outer", "in")
				inner := semel.Define("inner", plan{Retry: retries}).Call(caller, "inner", "in")
				check.Must(semel.Enqueue(t.Context(), w, outer, semel.EnqueueOptions{}))(t)
				attempts, err := adapter.Dequeue(t.Context(), worker, outerOp, 1)
				if err != nil || len(attempts) != 1 {
					t.Fatalf("Dequeue = %v, %v", attempts, err)
				}
				a := attempts[0]
				_, _, err = semel.Do(a.Context(), w, inner, func(ctx context.Context) (string, error) {
					if _, err := admin.Cancel(t.Context(), w, outer.ID(), "the customer called"); err != nil {
						t.Error(err)
					}
					adapter.RenewLeases(t.Context(), worker, attempts)
					<-ctx.Done()
					return "", semel.NotCommitted(context.Cause(ctx))
				})
				check.Equal(t, w.record(t, inner).State, store.Pending, "the inner record: want Pending: %v", err)
				if _, told := a.End(nil, semel.NotCommitted(err)); told == nil || w.record(t, outer).State != store.Failed {
					t.Errorf("the cancelled task: %v, %v, want it to have failed", w.record(t, outer).State, told)
				}
			})
		})
	}
}

// TestLostLeaseIsOfOneAttempt: an operation that is called by an attempt whose lease is
// lost is interrupted, which its Retry does not count as an error of its own.
func TestLostLeaseIsOfOneAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newFixture(t)
		outer := semel.Define("outer", plan{MaxRun: time.Second}).Call(caller, "outer", "in")
		inner := semel.Define("inner", plan{Retry: retry(semel.Retry{MaxErrors: 1})}).Call(caller, "inner", "in")
		_, _, err := semel.Do(t.Context(), w, outer, func(ctx context.Context) (string, error) {
			_, _, err := semel.Do(ctx, w, inner, func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", semel.NotCommitted(context.Cause(ctx))
			})
			return "", err
		})
		r := w.record(t, inner)
		if p, _ := admin.ProgressOf(r); r.State != store.Pending || p.Errors != 0 {
			t.Errorf("the inner record is %v with %d errors, want Pending with none: %v", r.State, p.Errors, err)
		}
	})
}
