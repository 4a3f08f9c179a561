package semel_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

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
