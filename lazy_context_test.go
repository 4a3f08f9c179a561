package semel_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
)

// begun is an attempt of a call of its own, whose context ends when its max run is
// over.
func begun(ctx context.Context, t *testing.T, p *process, key string) *semel.Attempt {
	t.Helper()
	op := plain("span", semel.OperationOptions[string]{MaxRun: time.Minute})
	a, _, err := adapter.Begin(ctx, p, op.Call(me, key, "in"))
	check.Require(t, err, "Begin")
	return a
}

func wantEnded(ctx context.Context, t *testing.T, want error) {
	t.Helper()
	check.ErrorIs(t, ctx.Err(), context.Canceled, "Err")
	check.ErrorIs(t, context.Cause(ctx), want, "Cause")
	select {
	case <-ctx.Done():
	default:
		t.Error("Done is open, want it closed")
	}
}

// An attempt's context has the cause of its end, with and without a waiting goroutine.
func TestContextCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		unwatched, watched := begun(t.Context(), t, p, "unwatched"), begun(t.Context(), t, p, "watched")
		derived, cancel := context.WithCancel(watched.Context())
		defer cancel()
		called := make(chan error, 1)
		context.AfterFunc(derived, func() { called <- context.Cause(derived) })
		if err := errors.Join(unwatched.Context().Err(), derived.Err(), context.Cause(unwatched.Context())); err != nil {
			t.Errorf("while the attempts run: %v, want nothing", err)
		}
		pass(time.Minute + time.Second)
		wantEnded(unwatched.Context(), t, semel.ErrLeaseLost)
		wantEnded(watched.Context(), t, semel.ErrLeaseLost)
		wantEnded(derived, t, semel.ErrLeaseLost)
		check.ErrorIs(t, <-called, semel.ErrLeaseLost, "the function called at the end sees")
		unwatched.Abandon()
		watched.Abandon()
		wantEnded(unwatched.Context(), t, semel.ErrLeaseLost)
	})
}

// What ended it first is the cause, its caller's end or its own.
func TestContextKeepsItsFirstCause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		caller, hangUp := context.WithCancelCause(t.Context())
		before, after := begun(caller, t, p, "before"), begun(caller, t, p, "after")
		defer before.Abandon()
		lost := begun(caller, t, p, "lost")
		defer lost.Abandon()
		_, _ = after.End("v", nil)
		hangUp(errBoom)
		pass(2 * time.Minute) // and only now max run is over
		wantEnded(before.Context(), t, errBoom)
		wantEnded(after.Context(), t, context.Canceled)
		wantEnded(lost.Context(), t, errBoom)
	})
}

// The lease was lost first, and the context was first used after the caller had
// hung up.
func TestContextLostBeforeItsCallerCanceled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		caller, hangUp := context.WithCancelCause(t.Context())
		a := begun(caller, t, p, "k")
		defer a.Abandon()
		pass(2 * time.Minute)
		hangUp(errBoom)
		wantEnded(a.Context(), t, semel.ErrLeaseLost)
	})
}

// A context derived from an attempt's costs no goroutine: the standard library
// knows what to cancel it with.
func TestDerivedContextsCostNoGoroutine(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	a := begun(t.Context(), t, p, "k")
	defer a.Abandon()
	derived, cancel := context.WithCancel(a.Context())
	defer cancel()
	stacks := make([]byte, 1<<22)
	own, _, _ := strings.Cut(string(stacks[:runtime.Stack(stacks, false)]), " [") // "goroutine 7"
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "propagateCancel in "+own+"\n") { // and not of a test beside this one
		t.Error("a goroutine waits for the end of a context")
	}
	a.Abandon()
	wantEnded(derived, t, context.Canceled)
}

// An attempt's context has its caller's values and deadline, and its attempt.
func TestContextHasTheValuesOfItsParent(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	type key struct{}
	deadline := time.Unix(1<<40, 0)
	caller, cancel := context.WithDeadline(context.WithValue(t.Context(), key{}, "value"), deadline)
	defer cancel()
	a := begun(caller, t, p, "k")
	for range 2 { // before a goroutine waits for it, and then
		if got, ok := a.Context().Deadline(); !ok || !got.Equal(deadline) {
			t.Errorf("Deadline = %v, %v; want %v", got, ok, deadline)
		}
		if got := a.Context().Value(key{}); got != "value" {
			t.Errorf("Value = %v, want %q", got, "value")
		}
		if got, ok := semel.AttemptOf(a.Context()); !ok || got != a {
			t.Errorf("AttemptOf = %v, %v; want the attempt", got, ok)
		}
		_ = a.Context().Done()
	}
	a.Abandon()
	if got := a.Context().Value(key{}); got != "value" {
		t.Errorf("Value after the end = %v, want %q", got, "value")
	}
}

// Many use an attempt's context while it ends.
func TestContextIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	for range 200 {
		a := begun(t.Context(), t, p, newKey())
		var users sync.WaitGroup
		for n := range 4 {
			users.Go(func() {
				ctx := a.Context()
				if n%2 == 0 && ctx.Err() != nil && context.Cause(ctx) == nil {
					t.Error("a context that has ended has no cause")
				}
				derived, cancel := context.WithCancel(ctx)
				defer cancel()
				<-derived.Done()
			})
		}
		a.Abandon()
		users.Wait()
	}
}
