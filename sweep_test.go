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
	eachPolicy(t, func(t *testing.T, pc policyCase) {
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
}

// TestSweepContinuesAfterAFailedProbe: one record that cannot be looked at keeps no other
// from being freed.
func TestSweepContinuesAfterAFailedProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Heal(func(_ context.Context, _ semel.Scope, key string) (any, bool, error) {
			if key == "poison" {
				return nil, false, errBoom
			}
			return "found", true, nil
		})})
		p, mem := owned(t, op)
		createExisting(t, mem, op.Call(me, "poison", "in"), expired) // the oldest
		createExisting(t, mem, op.Call(me, "k", "in"), expired)
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
	for name, plan := range map[string]func(request) fault{
		"scan":          failOn("Scan", fault{Before: errCut}),
		"swap":          failOn("Swap", fault{Before: errCut}),
		"swap, applied": failOn("Swap", fault{After: errCut}),
	} {
		t.Run(name, func(t *testing.T) {
			eachPolicy(t, func(t *testing.T, pc policyCase) {
				op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
				p, mem := owned(t, op)
				createExisting(t, mem, op.Call(me, "k", "in"), expired)
				p.faults.Decide(plan)
				check.ResultIs(admin.Sweep(t.Context(), p, 10))(t, admin.Swept{}, errCut, "Sweep (nothing counted)")
			})
		})
	}
}

// TestSweepLosesToARetry: a record that another caller has settled is not counted.
func TestSweepLosesToARetry(t *testing.T) {
	eachPolicy(t, func(t *testing.T, pc policyCase) {
		mem := memory.New(memory.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
		call := op.Call(me, "k", "in")
		createExisting(t, mem, call, expired)
		p, other := start(t, mem, semel.Options{Operations: []semel.Declared{op}}), start(t, mem, semel.Options{})
		gate := make(chan struct{})
		p.faults.Decide(failOn("Swap", fault{Gate: gate}))
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
		check.Equal(t, record(t, mem, call).Token, before, "the current record")
	})
}

// TestSweepBusy leaves the record for another pass.
func TestSweepBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{})
		p, mem := owned(t, op)
		createExisting(t, mem, op.Call(me, "k", "in"), expired)
		p.faults.Decide(func(r request) fault { return fault{Busy: r.Method == "Swap"} })
		check.Result(admin.Sweep(t.Context(), p, 10))(t, (admin.Swept{}), "Sweep (want nothing)")
		p.faults.Decide(nil)
		check.Result(admin.Sweep(t.Context(), p, 10))(t, (admin.Swept{Doubted: 1}), "Sweep (want it doubted)")
	})
}
