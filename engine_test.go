package semel_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/engine"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestNewChecksTheCapabilities(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := limited(func(c *store.Capabilities) { c.Linearizable = false })
		wantField(t, check.Err(semel.New(w, semel.Options{Survive: store.NoFailure})), "store")
		w.Adjust = func(context.Context, *store.Capabilities) error { return errCut }
		check.ErrorIs(t, check.Err(semel.New(w, semel.Options{Survive: store.NoFailure})), errCut, "New")
		w.Adjust = func(ctx context.Context, _ *store.Capabilities) error { <-ctx.Done(); return ctx.Err() }
		began := time.Now()
		_, err := semel.New(w, semel.Options{Survive: store.NoFailure, RecordTimeout: time.Second})
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

// TestCloseRejectsNewCalls, also those that the cache could answer.
func TestCloseRejectsNewCalls(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		mem := memory.New(memory.Options{})
		p := cached(t, mem, semel.Options{})
		op := plain("op", d.o)
		d.ask(t.Context(), p, op.Call(me, "answered", "in"), returns("v")).want(t, "v", false)
		for range 2 { // closing again is no error
			check.NoError(t, p.Close(t.Context()), "Close")
		}
		for _, key := range []string{"k", "answered"} {
			a := d.ask(t.Context(), p, op.Call(me, key, "in"), never(t))
			a.wantErr(t, semel.ErrClosed)
			check.Equal(t, semel.RetryAfter(a.err), time.Second, "RetryAfter (another process may answer)")
			_, _, err := adapter.Begin(t.Context(), p, op.Call(me, key, "in"))
			check.ErrorIs(t, err, semel.ErrClosed, "Begin")
		}
		wantState(t, mem, op.Call(me, "k", "in"), store.Absent)
	})
}

func TestCloseWaitsForRunningAttempts(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloWith(t, semel.Options{Wait: time.Hour}, d.o)
		leader := d.later(t, p, call, takes(time.Minute))
		follower := d.later(t, p, call, never(t))
		began := time.Now()
		check.NoError(t, p.Close(t.Context()), "Close")
		check.Equal(t, time.Since(began), time.Minute, "Close took")
		(<-leader).want(t, "v", false)
		(<-follower).want(t, "v", true)
	})
}

// TestCloseEndsWithItsContext: running attempts continue and record their outcome, and it can be
// called again.
func TestCloseEndsWithItsContext(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, call := soloCall(t, d.o)
		leader := d.later(t, p, call, takes(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded, "Close")
		(<-leader).want(t, "v", false)
		check.NoError(t, p.Close(t.Context()), "Close after it ended")
		wantState(t, p.mem, call, store.Succeeded)
	})
}

// TestRetentionIsLongerThanRecording: a record that is purged while its leader still
// asks what became of a commit would tell it that nothing had happened.
func TestRetentionIsLongerThanRecording(t *testing.T) {
	t.Parallel()
	short := plain("op", semel.OperationOptions[string]{Retention: 5 * time.Second})
	for _, o := range []semel.Options{{Retention: time.Second}, {Operations: []semel.Declared{short}}} {
		o.Survive = store.NoFailure
		wantField(t, check.Err(semel.New(memory.New(memory.Options{}), o)), "Retention")
	}
	wantRefusedEverywhere(t, short.Call(me, "k", "in"), "Retention")
}

func TestPolicyNames(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]semel.Policy{
		"unset": {}, "Atomic": semel.Atomic(), "Hold": semel.Hold(), "Heal": semel.Heal(nil),
		"Fenced": semel.Fenced(nil, nil), "Keyed": semel.Keyed(), "AtLeastOnce": semel.AtLeastOnce(),
	} {
		check.Equal(t, p.String(), want, "String()")
	}
}

// reentrantObserver is an Observer that calls the engine for each event that is not of its own calls.
type reentrantObserver struct {
	engine atomic.Pointer[semel.Engine[*memory.Tx]]
	kinds  chan event.Kind
}

var alert = semel.Define("alert", semel.OperationOptions[string]{})

func (a *reentrantObserver) Observe(ctx context.Context, e event.Event) {
	engine := a.engine.Load()
	if engine == nil || e.Operation != "op" {
		return
	}
	_, _, _ = semel.Do(context.WithoutCancel(ctx), engine, alert.Call(me, string(e.Kind)+e.ID.String(), "in"), returns("told"))
	_, _ = admin.List(context.WithoutCancel(ctx), engine, store.Query{State: store.InDoubt, Limit: 1})
	a.kinds <- e.Kind
}

// TestObserverMayCallTheEngine, also when an outcome cannot be recorded or is dropped, and
// when a lease is lost.
func TestObserverMayCallTheEngine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &reentrantObserver{kinds: make(chan event.Kind, 1000)}
		p, _ := solo(t, semel.Options{Observer: a, MaxUnrecorded: 3, Lease: time.Minute})
		a.engine.Store(p.Engine)
		op := plain("op", semel.OperationOptions[string]{})
		call := func(key string) semel.Call { return op.Call(me, key, "in") }
		p.faults.Decide(func(r request) fault { // the store answers claims alone, those of alerts too
			for _, c := range r.Changes {
				if c.If != (store.Token{}) {
					return fault{Before: errCut}
				}
			}
			return fault{}
		})
		do(t.Context(), p, call("late"), returns("v")).want(t, "v", false)
		do(t.Context(), p, call("dropped"), returns("v")).want(t, "v", false)
		do(t.Context(), p, call("lost"), func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}).wantErr(t, semel.ErrOutcomeUnknown)
		p.faults.Decide(nil)
		pass(10 * time.Minute)
		seen := map[event.Kind]bool{}
		for len(a.kinds) > 0 {
			seen[<-a.kinds] = true
		}
		for _, kind := range []event.Kind{event.Late, event.LateDropped, event.LeaseLost} {
			if !seen[kind] {
				t.Errorf("%s was not observed; observed are %v", kind, seen)
			}
		}
	})
}
