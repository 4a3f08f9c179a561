package semel_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestNewChecksTheCapabilities(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := limited(func(c *store.Capabilities) { c.Linearizable = false })
		_, err := semel.New(w, semel.Options{Survive: store.NoFailure})
		wantField(t, err, "store")
		w.Adjust = func(context.Context, *store.Capabilities) error { return errCut }
		_, err = semel.New(w, semel.Options{Survive: store.NoFailure})
		check.ErrorIs(t, err, errCut, "New")
		w.Adjust = func(ctx context.Context, _ *store.Capabilities) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		_, err = semel.New(w, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Second})
		check.ErrorIs(t, err, context.DeadlineExceeded, "New of a store that hangs")
		check.Equal(t, time.Since(began), time.Second, "New gave up after")
	})
}

// exclusive starts processes over a store in which an open transaction keeps
// every other writer out.
func exclusive(t *testing.T, mem *memory.Store, o semel.Options) *process {
	t.Helper()
	return startOn(t, limitedOver(mem, func(c *store.Capabilities) { c.Exclusion = store.ExcludesAll }), o)
}

// TestExclusiveStoreIsReadFirst: a replay must not wait for a stranger's
// transaction, so nothing is written when the answer can be read, unless this
// process has written a moment ago.
func TestExclusiveStoreIsReadFirst(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p := exclusive(t, mem, semel.Options{})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), returns("v")).want(t, "v", false)
		pass(20 * time.Millisecond)
		p.faults.Decide(func(r request) fault { return fault{Busy: r.Writes(), Hang: r.Writes()} })
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
		d.ask(t.Context(), p, op.Call(me, "k", "other"), never(t)).wantErr(t, semel.ErrMismatch)
		p.faults.Decide(func(request) fault { return fault{Before: errCut} })
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).wantErr(t, semel.ErrUnavailable, errCut)
		p.faults.Decide(nil)
	})
}

// TestExclusiveTransactionKeepsItsLease: heartbeats would wait for the transaction,
// and no takeover is possible while it is open.
func TestExclusiveTransactionKeepsItsLease(t *testing.T) {
	eachLeasedMode(t, func(t *testing.T, s txMode) {
		mem := memory.New(memory.Options{})
		p := exclusive(t, mem, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
			p.faults.Decide(failOn("Swap", fault{Hang: true}))
			pass(10 * lease)
			p.faults.Decide(nil)
			check.NoError(t, context.Cause(ctx), "the function's context")
			return puts("e", "v")(ctx, tx)
		}).want(t, "v", false)
		wantEffect(t, mem, "e", true)
	})
}

// TestExclusiveTransactionEndsWithMaxRun all the same.
func TestExclusiveTransactionEndsWithMaxRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exclusive(t, memory.New(memory.Options{}), semel.Options{MaxRun: 45 * time.Second})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: lease}).Call(me, "k", "in")
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		doTx(t.Context(), p, call, func(ctx context.Context, _ *memory.Tx) (string, error) { return wait(ctx) }).want(t, "v", false)
		check.Equal(t, took, 45*time.Second, "the context ended after (max run)")
	})
}

// TestLeaseCountsBeforeAnExclusiveTransaction: only an open transaction keeps
// others out.
func TestLeaseCountsBeforeAnExclusiveTransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := exclusive(t, memory.New(memory.Options{}), semel.Options{})
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		do(t.Context(), p, atomicCallOf("k"), func(ctx context.Context) (string, error) {
			p.faults.Decide(func(r request) fault { return fault{Before: errCut} })
			defer p.faults.Decide(nil)
			_, err := wait(ctx)
			return "", semel.NotCommitted(errors.Join(err, errBoom))
		}).wantErr(t, errBoom)
		check.Equal(t, took, lease, "the context ended after (the lease)")
	})
}

// TestFullStore: nothing ran, and the error contains the store's reason.
func TestFullStore(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p := start(t, memory.New(memory.Options{MaxRecords: 1}), semel.Options{})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "k", "in"), returns("v")).want(t, "v", false)
		ran := false
		a := d.ask(t.Context(), p, op.Call(me, "other", "in"), func(context.Context) (string, error) { ran = true; return "v", nil })
		a.wantErr(t, memory.ErrFull)
		if inline := d.name == "inline"; ran != inline { // inline the last statement finds out, and rolls back
			t.Errorf("the function ran: %v", ran)
		}
		d.ask(t.Context(), p, op.Call(me, "k", "in"), never(t)).want(t, "v", true)
	})
}

// TestWrappedStoreIsUsed: the engine bypasses no store that wraps another one.
func TestWrappedStoreIsUsed(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{MaxUnrecorded: -1})
	p.faults.Decide(failOn("Swap", fault{Before: errBoom}))
	do(t.Context(), p, theCall, never(t)).wantErr(t, semel.ErrUnavailable)
}

// TestUnreferencedEngineIsCollected, even if it was not closed, and long before
// the lease of its last attempt expires.
func TestUnreferencedEngineIsCollected(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	core := func() weak.Pointer[engine.Core] {
		e := check.Must(semel.New(mem, semel.Options{Survive: store.NoFailure, Lease: 1000 * time.Hour}))(t)
		_, _, err := semel.Do(t.Context(), e, theCall, returns("v"))
		check.Require(t, err, "Do")
		return weak.Make(e.Core)
	}()
	for range 100 {
		if runtime.GC(); core.Value() == nil {
			return
		}
	}
	t.Error("the engine is kept by something of its own")
}
