package semel_test

import (
	"context"
	"errors"
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

// TestWaitContextOfAFollower: one that waits leaves when its patience is over, at
// once and alone.
func TestWaitContextOfAFollower(t *testing.T) {
	eachFollower(t, semel.Options{Wait: time.Hour}, func(t *testing.T, d entryPoint, leader, follower *process) {
		call := plain("op", d.o).Call(me, "k", "in")
		finish := make(chan struct{})
		first := d.later(t, leader, call, until(finish))
		ctx, hangUp := hangUpCall(t)
		leaves := blocked(func() answer { return d.ask(ctx, follower, call, never(t)) })
		stays := d.later(t, follower, call, never(t))
		pass(time.Minute)
		began := time.Now()
		hangUp()
		(<-leaves).wantErr(t, context.Canceled)
		check.Equal(t, time.Since(began), 0, "it left after its caller by")
		close(finish)
		(<-first).want(t, "v", false)
		(<-stays).want(t, "v", true)
	})
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

func TestWaitContextEndsBeforeTheCall(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		ctx, hangUp := hangUpCall(t)
		hangUp()
		d.ask(ctx, p, call, never(t)).wantErr(t, context.Canceled)
		wantState(t, mem, call, store.Absent)
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
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
