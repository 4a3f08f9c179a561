package semel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// newRunner returns an engine over a store without transactions. It is closed when
// the test ends.
func newRunner(t *testing.T, s store.Store, o semel.Options) semel.Runner {
	t.Helper()
	o.Survive = store.NoFailure
	e, err := semel.NewRunner(s, o)
	check.Require(t, err, "NewRunner")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.NoError(t, e.Close(ctx), "Close")
	})
	return e
}

// onPlainStores runs a test over a store without transactions, with and without the
// optional interfaces.
func onPlainStores(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run("with every optional interface", func(t *testing.T) { test(t, plainstore.New(plainstore.Options{})) })
	t.Run("bare", func(t *testing.T) { test(t, plainstore.New(plainstore.Options{}).Bare()) })
}

// Callers in two processes share one run and its result.
func TestDoWithoutTransactions(t *testing.T) {
	t.Parallel()
	without := policies()
	delete(without, "Atomic")
	for name, pc := range without {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onPlainStores(t, func(t *testing.T, s store.Store) {
				engines := []semel.Runner{newRunner(t, s, semel.Options{Wait: time.Minute}), newRunner(t, s, semel.Options{Wait: time.Minute})}
				op := semel.Define("op", semel.OperationOptions[string]{Policy: pc.p})
				var runs atomic.Int32
				var callers sync.WaitGroup
				for i := range 20 {
					callers.Go(func() {
						v, _, err := semel.Do(t.Context(), engines[i%2], op.Call(me, "k", "in"), func(context.Context) (string, error) {
							return fmt.Sprint("run ", runs.Add(1)), nil
						})
						check.Result(v, err)(t, "run 1", "Do (want the result of run 1)")
					})
				}
				callers.Wait()
			})
		})
	}
}

func TestAtomicNeedsTransactions(t *testing.T) {
	t.Parallel()
	atomically := semel.Define("atomically", semel.OperationOptions[string]{Policy: semel.Atomic()})
	_, err := semel.NewRunner(plainstore.New(plainstore.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{atomically}})
	wantField(t, err, "Policy")
	e := newRunner(t, plainstore.New(plainstore.Options{}), semel.Options{})
	_, _, err = semel.Do(t.Context(), e, atomically.Call(me, "k", "in"), func(context.Context) (string, error) {
		t.Error("the function runs")
		return "", nil
	})
	wantField(t, err, "Policy")
}

// Operators see and resolve records of a store without transactions.
func TestAdminWithoutTransactions(t *testing.T) { //nolint:tparallel // onPlainStores runs them at once
	t.Parallel()
	onPlainStores(t, func(t *testing.T, s store.Store) {
		e := newRunner(t, s, semel.Options{})
		call := semel.Define("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		_, _, err := semel.Do(t.Context(), e, call, func(context.Context) (string, error) { return "", errors.New("no reply") })
		if !errors.Is(err, semel.ErrOutcomeUnknown) {
			t.Fatalf("Do = %v, want ErrOutcomeUnknown", err)
		}
		if all, err := admin.List(t.Context(), e, store.Query{State: store.InDoubt}); err != nil || len(all) != 1 {
			t.Errorf("List = %d records, %v, want the one in doubt", len(all), err)
		}
		r, err := admin.Resolve(t.Context(), e, admin.Resolution{ID: call.ID(), To: store.Succeeded, Result: "found", Actor: "ann", Reason: "seen"})
		check.Result(r.State, err)(t, store.Succeeded, "Resolve")
		v, replayed, err := semel.Do(t.Context(), e, call, func(context.Context) (string, error) { return "", errors.New("runs again") })
		if v != "found" || !replayed || err != nil {
			t.Errorf("Do = %q, %v, %v, want the resolution", v, replayed, err)
		}
	})
}

// The compiler rejects each use of a transaction with an engine that has none, or has those of
// another store; then its message names both types.
func TestTransactionsWithoutTransactionsDoNotCompile(t *testing.T) {
	t.Parallel()
	const file = "testdata/without_transactions/calls.go"
	source, err := os.ReadFile(file)
	check.Require(t, err)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./testdata/without_transactions").CombinedOutput()
	if err == nil {
		t.Fatal("the package compiles")
	}
	if !strings.Contains(string(out), "*sql.Tx") || !strings.Contains(string(out), "*memory.Tx") {
		t.Errorf("the compiler does not name both types:\n%s", out)
	}
	for i, line := range strings.Split(string(source), "\n") {
		fails := strings.Contains(string(out), fmt.Sprintf("%s:%d:", file, i+1))
		if want := strings.HasSuffix(line, "// no"); fails != want {
			t.Errorf("line %d does not compile: %v, want %v: %s\n%s", i+1, fails, want, line, out)
		}
	}
}

// The engine sends no Swap with more bytes than the store accepts, and rejects a store
// into which one change may not fit.
func TestSwapsStayWithinMaxBytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const maxBytes, result = 4 << 10, 1500
		gate := make(chan struct{})
		s := storetest.NewFaulty(plainstore.New(plainstore.Options{MaxBytes: maxBytes, MaxOutcome: maxBytes / 2}), func(c storetest.Call) storetest.Fault {
			check.NoError(t, store.CheckBytes(c.Changes, maxBytes), "%s", c.Method)
			return storetest.Fault{Gate: gate}
		})
		e := newRunner(t, s, semel.Options{})
		op := semel.Define("op", semel.OperationOptions[int]{})
		var callers sync.WaitGroup
		for i := range 200 {
			callers.Go(func() {
				v, _, err := semel.Do(t.Context(), e, op.Call(me, fmt.Sprint(i), i), func(context.Context) (string, error) {
					return strings.Repeat("r", result), nil
				})
				check.Result(len(v), err)(t, result, "Do")
			})
		}
		synctest.Wait() // the first Swap waits for the gate, and all others for it
		close(gate)
		callers.Wait()
		small := storetest.NewFaulty(plainstore.New(plainstore.Options{MaxBytes: maxBytes, MaxOutcome: maxBytes/2 + 1}), nil)
		_, err := semel.NewRunner(small, semel.Options{Survive: store.NoFailure})
		if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != "store" || !strings.Contains(f.Reason, "MaxBytes") {
			t.Errorf("NewRunner = %v, want an error about MaxBytes", err)
		}
	})
}

// TestWaitEndsWithTheChange: over a store that watches, a caller that waits for another
// process is answered at the moment when that one ends. Otherwise it polls.
func TestWaitEndsWithTheChange(t *testing.T) {
	const runs = 3300 * time.Millisecond
	eachInBubble(t, map[string]bool{"watched": true, "polled": false}, func(t *testing.T, watches bool) {
		plain := plainstore.New(plainstore.Options{})
		s := store.Store(plain)
		if !watches {
			s = plain.Bare()
		}
		var engines [2]semel.Runner
		for i := range engines {
			engines[i] = check.Must(semel.NewRunner(s, semel.Options{Survive: store.NoFailure, Wait: time.Hour}))(t)
		}
		call := semel.Define("op", semel.OperationOptions[string]{}).Call(semel.Shared(), "k", "in")
		begun, answered := time.Now(), make(chan time.Duration, 2)
		for i, engine := range engines {
			go func() {
				v, replayed, err := semel.Do(t.Context(), engine, call, func(context.Context) (string, error) {
					pass(runs)
					return "v", nil
				})
				if v != "v" || replayed != (i == 1) || err != nil {
					t.Errorf("caller %d: %q, replayed %v, %v", i, v, replayed, err)
				}
				answered <- time.Since(begun)
			}()
			synctest.Wait()
		}
		check.Equal(t, <-answered, runs, "the time of the first caller")
		if after := <-answered; (after == runs) != watches {
			t.Errorf("the other caller was answered after %v, want at the same time: %v", after, watches)
		}
		for _, engine := range engines {
			check.NoError(t, engine.Close(t.Context()))
		}
	})
}
