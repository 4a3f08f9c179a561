package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

func TestSweepFollowsThePolicy(t *testing.T) {
	t.Parallel()
	for _, pc := range policies() {
		t.Run(pc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				op := plain("op", semel.OperationOptions[string]{Policy: pc.p, Retention: time.Hour})
				other := plain("other", semel.OperationOptions[string]{Policy: pc.p})
				call, stranger := op.Call(me, "k", "in"), other.Call(me, "k", "in")
				createExisting(t, mem, call, expired)
				createExisting(t, mem, stranger, expired)
				for s, key := range map[existingState]string{pending: "p", live: "l", succeeded: "s", failed: "f"} {
					createExisting(t, mem, op.Call(me, key, "in"), s)
				}
				p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
				got, err := admin.Sweep(t.Context(), p, 10)
				want, state := admin.Swept{Doubted: 1}, store.InDoubt
				switch {
				case pc.found:
					want, state = admin.Swept{Healed: 1}, store.Succeeded
				case pc.again:
					want, state = admin.Swept{Requeued: 1}, store.Pending
				}
				if err != nil || got != want {
					t.Errorf("Sweep = %+v, %v, want %+v", got, err, want)
				}
				if r := wantState(t, mem, call, state); state.Unfinished() != (r.Expire == 0) {
					t.Errorf("%v expires in %v", r.State, r.Expire)
				}
				wantState(t, mem, stranger, store.InProgress) // of an operation it was not given
				wantState(t, mem, op.Call(me, "l", "in"), store.InProgress)
				check.Result(admin.Sweep(t.Context(), p, 10))(t, (admin.Swept{}), "Sweep again (want nothing left)")
				if pc.again {
					do(t.Context(), p, call, p.run(returns("again"))).want(t, "again", false)
				}
			})
		})
	}
}

// TestSweepContinuesAfterAFailedProbe: one record that cannot be looked at keeps no other
// from being freed.
func TestSweepContinuesAfterAFailedProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(_ context.Context, _ semel.Scope, key string) (any, bool, error) {
			if key == "poison" {
				return nil, false, errBoom
			}
			return "found", true, nil
		})})
		createExisting(t, mem, op.Call(me, "poison", "in"), expired) // the oldest
		createExisting(t, mem, op.Call(me, "k", "in"), expired)
		p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		got, err := admin.Sweep(t.Context(), p, 10)
		if !errors.Is(err, errBoom) || got != (admin.Swept{Healed: 1}) {
			t.Errorf("Sweep = %+v, %v, want the one healed and the error", got, err)
		}
		if want := "sweep op: look for evidence: boom"; err != nil && err.Error() != want {
			t.Errorf("Sweep: %v, want %s", err, want)
		}
		wantState(t, mem, op.Call(me, "poison", "in"), store.InProgress)
		wantState(t, mem, op.Call(me, "k", "in"), store.Succeeded)
	})
}

func TestSweepWithLostReply(t *testing.T) {
	t.Parallel()
	tests := map[string]func(r request) fault{
		"scan":          func(r request) fault { return only(r, "Scan", fault{Before: errCut}) },
		"swap":          func(r request) fault { return only(r, "Swap", fault{Before: errCut}) },
		"swap, applied": func(r request) fault { return only(r, "Swap", fault{After: errCut}) },
	}
	for name, plan := range tests {
		for _, pc := range policies() {
			t.Run(name+"/"+pc.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					mem := memory.New(memory.Options{})
					op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
					createExisting(t, mem, op.Call(me, "k", "in"), expired)
					p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
					p.faults.Decide(plan)
					if got, err := admin.Sweep(t.Context(), p, 10); !errors.Is(err, errCut) || got != (admin.Swept{}) {
						t.Errorf("Sweep = %+v, %v, want the store's error and nothing counted", got, err)
					}
				})
			})
		}
	}
}

// only is f for calls of one kind.
func only(r request, kind string, f fault) fault {
	if r.Method == kind {
		return f
	}
	return fault{}
}

// TestSweepLosesToARetry: a record that another caller has settled is not counted.
func TestSweepLosesToARetry(t *testing.T) {
	t.Parallel()
	for _, pc := range policies() {
		t.Run(pc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				mem := memory.New(memory.Options{})
				op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
				call := op.Call(me, "k", "in")
				createExisting(t, mem, call, expired)
				p, other := start(t, mem, semel.Options{Operations: []semel.Declared{op}}), start(t, mem, semel.Options{})
				gate := make(chan struct{})
				p.faults.Decide(func(r request) fault { return only(r, "Swap", fault{Gate: gate}) })
				done := make(chan admin.Swept)
				go func() {
					swept, err := admin.Sweep(t.Context(), p, 10)
					check.NoError(t, err, "Sweep")
					done <- swept
				}()
				pass(time.Second)
				do(t.Context(), other, call, returns("other"))
				before := record(t, mem, call).Token
				close(gate)
				if got := <-done; got != (admin.Swept{}) {
					t.Errorf("Sweep = %+v, want nothing: another caller was first", got)
				}
				if got := record(t, mem, call).Token; got != before {
					t.Errorf("the current record is %+v, want %+v", got, before)
				}
			})
		})
	}
}

// TestSweepBusy leaves the record for another pass.
func TestSweepBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{})
		createExisting(t, mem, op.Call(me, "k", "in"), expired)
		p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		p.faults.Decide(func(r request) fault { return fault{Busy: r.Method == "Swap"} })
		check.Result(admin.Sweep(t.Context(), p, 10))(t, (admin.Swept{}), "Sweep (want nothing)")
		p.faults.Decide(nil)
		check.Result(admin.Sweep(t.Context(), p, 10))(t, (admin.Swept{Doubted: 1}), "Sweep (want it doubted)")
	})
}
