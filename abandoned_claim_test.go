package semel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// lateClaimStore is a store that delays the first claim and all later changes.
type lateClaimStore struct {
	*memory.Store

	claims atomic.Int64
}

func (o *lateClaimStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if changes[0].To.State != store.InProgress || o.claims.Add(1) > 3 {
		return o.Store.Swap(ctx, changes)
	}
	if o.claims.Load() == 1 {
		time.AfterFunc(500*time.Millisecond, func() {
			_, _ = o.Store.Swap(context.WithoutCancel(ctx), changes)
		})
	}
	return nil, errCut
}

// TestLateClaimIsRejected: a claim that was released before it arrived must not be
// applied. No function ran for it, and no process would end it.
func TestLateClaimIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		engine, err := semel.New(&lateClaimStore{Store: mem}, semel.Options{Survive: store.NoFailure})
		if err != nil {
			t.Fatal(err)
		}
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		run := func() (string, bool, error) { return semel.Do(t.Context(), engine, call, returns("v")) }
		if _, _, err := run(); err == nil {
			t.Error("a call without an answer has one")
		}
		pass(time.Minute)
		if v, replayed, err := run(); v != "v" || replayed || err != nil {
			t.Errorf("later: %q, replayed %v, %v, want a first run", v, replayed, err)
		}
		if err := engine.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// delayedSwap is a store in which a delayed claim arrives right after its release.
type delayedSwap struct {
	*memory.Store

	claim atomic.Pointer[store.Change]
}

func (c *delayedSwap) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if changes[0].To.State == store.InProgress {
		claim := changes[0]
		c.claim.Store(&claim)
		return nil, errCut
	}
	answers, err := c.Store.Swap(ctx, changes)
	if claim := c.claim.Swap(nil); claim != nil && changes[0].If == claim.To.Token {
		_, _ = c.Store.Swap(ctx, []store.Change{*claim})
	}
	return answers, err
}

// TestClaimThatArrivesDuringItsRelease is released all the same. No function ran
// for it, and no process would end it.
func TestClaimThatArrivesDuringItsRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		engine, err := semel.New(&delayedSwap{Store: mem}, semel.Options{Survive: store.NoFailure})
		if err != nil {
			t.Fatal(err)
		}
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		if _, _, err := semel.Do(t.Context(), engine, call, never(t)); err == nil {
			t.Error("a call without an answer has one")
		}
		if err := engine.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		wantState(t, mem, call, store.Pending)
	})
}

// TestRejectedClaimIsNotReleased: the claim was not written. There is nothing to
// release, and Close has nothing to wait for.
func TestRejectedClaimIsNotReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.wire.on(func(r request) fault { return fault{refuse: errBoom} })
		call := plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in")
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrUnavailable, errBoom)
		if err := p.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
		if got := p.wire.total(); got != 1 {
			t.Errorf("the store was called %d times, want the claim only", got)
		}
	})
}
