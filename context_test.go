package semel_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
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

// What ended it first is the cause, its caller's end or its own, also if the context is first used
// after both.
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
		caller, hangUp = context.WithCancelCause(t.Context())
		first := begun(caller, t, p, "first")
		defer first.Abandon()
		pass(2 * time.Minute)
		hangUp(errBoom)
		wantEnded(first.Context(), t, semel.ErrLeaseLost)
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
		check.Equal(t, a.Context().Value(key{}), "value", "Value")
		if got, ok := semel.AttemptOf(a.Context()); !ok || got != a {
			t.Errorf("AttemptOf = %v, %v; want the attempt", got, ok)
		}
		_ = a.Context().Done()
	}
	a.Abandon()
	check.Equal(t, a.Context().Value(key{}), "value", "Value after the end")
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

// hangUpCall returns a context whose caller can hang up without ending it.
func hangUpCall(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	patience, hangUp := context.WithCancel(t.Context())
	t.Cleanup(hangUp)
	return adapter.WithWaitContext(t.Context(), patience), hangUp
}

// TestWaitContextLimitsOnlyTheWait: what an adapter keeps is as if it had been derived.
func TestWaitContextLimitsOnlyTheWait(t *testing.T) {
	t.Parallel()
	type key struct{}
	number := new(int)
	asker, hangUp := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	asker, stop := context.WithTimeout(context.WithValue(asker, number, "number"), time.Hour)
	defer stop()
	derived := adapter.WithWaitContext(context.WithoutCancel(asker), asker)
	kept := new(adapter.WaitContext).Of(asker)
	under, cancel := context.WithCancel(kept)
	defer cancel()
	hangUp(errors.New("hung up"))
	for name, ctx := range map[string]context.Context{"derived": derived, "kept": kept, "under it": under} {
		if _, ok := ctx.Deadline(); ok || ctx.Err() != nil || context.Cause(ctx) != nil {
			t.Errorf("%s: a deadline %v, Err = %v, Cause = %v; want none", name, ok, ctx.Err(), context.Cause(ctx))
		}
		if ctx.Value(key{}) != "value" || ctx.Value(number) != "number" {
			t.Errorf("%s: it lacks the values of the caller's context", name)
		}
	}
	p, _ := solo(t, semel.Options{})
	if _, _, err := adapter.Begin(kept, p, plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")); !errors.Is(err, context.Canceled) {
		t.Errorf("Begin for a caller that has disconnected = %v, want %v", err, context.Canceled)
	}
}

// TestWaitContextOfTheLeader: the end of a caller's wait disturbs neither the
// leader nor its inner calls.
func TestWaitContextOfTheLeader(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{Wait: time.Hour})
		call, inner := plain("op", d.o).Call(me, "k", "in"), plain("inner", semel.OperationOptions[string]{}).Call(me, "k", "in")
		other := start(t, memory.New(memory.Options{}), semel.Options{Wait: time.Hour})
		finish := make(chan struct{})
		slow := blocked(func() answer { return do(t.Context(), other, inner, until(finish)) })
		ctx, hangUp := hangUpCall(t)
		runs := blocked(func() answer {
			return d.ask(ctx, p, call, func(ctx context.Context) (string, error) {
				do(ctx, other, inner, never(t)).want(t, "v", true)
				return "v", ctx.Err()
			})
		})
		hangUp()
		synctest.Wait()
		close(finish)
		(<-runs).want(t, "v", false)
		(<-slow).want(t, "v", false)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestTakeoverByAWaiterHasTheWholeLease: the lease counts from the claim, not from
// the beginning of the wait.
func TestTakeoverByAWaiterHasTheWholeLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{
			Policy: semel.AtLeastOnce(), Lease: 10 * time.Second, Wait: time.Minute,
		}).Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		waiter := start(t, mem, semel.Options{})
		do(t.Context(), waiter, call, func(ctx context.Context) (string, error) {
			pass(5 * time.Second)
			check.NoError(t, context.Cause(ctx), "after half of its lease")
			return "v", nil
		}).want(t, "v", false)
		waiter.seen.want(t, event.Takeover)
		waiter.seen.wantNone(t, event.LeaseLost)
	})
}
