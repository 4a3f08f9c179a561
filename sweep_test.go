package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
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

func TestSweepWithLostReply(t *testing.T) {
	eachPair(t, policies(), map[string]func(request) fault{
		"scan":          failOn("Scan", fault{Before: errCut}),
		"swap":          failOn("Swap", fault{Before: errCut}),
		"swap, applied": failOn("Swap", fault{After: errCut}),
	}, func(t *testing.T, pc policyCase, plan func(request) fault) {
		op := plain("op", semel.OperationOptions[string]{Policy: pc.p})
		p, mem := owned(t, op)
		createExisting(t, mem, op.Call(me, "k", "in"), expired)
		p.faults.Decide(plan)
		check.ResultIs(admin.Sweep(t.Context(), p, 10))(t, admin.Swept{}, errCut, "Sweep (nothing counted)")
	})
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

// TestSweepPassesRecordsItCannotFree: records that no probe can look for, or that
// an open transaction holds, keep those behind them waiting no longer than a pass.
func TestSweepPassesRecordsItCannotFree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{
			Policy: semel.Heal(func(_ context.Context, _ semel.Scope, key string) (any, bool, error) {
				if strings.HasPrefix(key, "blind") {
					return nil, false, errBoom
				}
				return "found", true, nil
			}),
		})
		p, mem := owned(t, op)
		var held *semel.Attempt
		for i := range 5 {
			claimAndCrash(t, start(t, mem, semel.Options{}), op.Call(me, fmt.Sprint("blind", i), "in"))
			pass(time.Second)
		}
		first := start(t, mem, semel.Options{})
		held = begin(t, first, op.Call(me, "held", "in"))
		t.Cleanup(held.Abandon)
		first.crash()
		pass(time.Second)
		for i := range 3 {
			claimAndCrash(t, start(t, mem, semel.Options{}), op.Call(me, fmt.Sprint("fine", i), "in"))
			pass(time.Second)
		}
		pass(time.Minute)
		whileHeld(t, mem, held, func() {
			for _, want := range []int{2, 1, 0} {
				swept, err := admin.Sweep(t.Context(), p, 2)
				if swept.Healed != want || !errors.Is(err, errBoom) || !strings.Contains(err.Error(), "sweep op: look for evidence: boom") {
					t.Errorf("Sweep = %+v, %v, want %d healed, and why the others were not", swept, err, want)
				}
			}
		})
		if swept, _ := admin.Sweep(t.Context(), p, 2); swept.Healed != 1 {
			t.Errorf("Sweep = %+v, want the one healed that was held", swept)
		}
		wantState(t, mem, op.Call(me, "blind0", "in"), store.InProgress)
	})
}

// TestSweepOfMoreThanAPage: a sweep reads several pages of the store, and settles
// no more records than its limit.
func TestSweepOfMoreThanAPage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		for i := range store.MaxLimit + 20 {
			_, _ = semel.Enqueue(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), semel.EnqueueOptions{})
		}
		for _, limit := range []int{1000, 20} {
			dequeuedUpTo(t, p, op, limit, limit)
		}
		pass(time.Minute)
		for _, limit := range []int{0, -1} {
			check.Result(admin.Sweep(t.Context(), p, limit))(t, admin.Swept{}, "Sweep")
		}
		check.Result(admin.Sweep(t.Context(), p, 5))(t, admin.Swept{Requeued: 5}, "Sweep")
		check.Result(admin.Sweep(t.Context(), p, 5000))(t, admin.Swept{Requeued: store.MaxLimit + 15}, "Sweep")
	})
}

// TestSweepKeepsTheHistory of what it parks in doubt, too.
func TestSweepKeepsTheHistory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.Hold(), 9, 9)
		work(t, p, op, fails(semel.NotCommitted(errBoom)))
		pass(time.Minute)
		crashAttempt(t, p.mem, op)
		check.Result(admin.Sweep(t.Context(), p, 10))(t, admin.Swept{Doubted: 1}, "Sweep")
		wantState(t, p.mem, call, store.InDoubt)
		wantTries(t, progress(t, p.mem, call), admin.TryError, admin.TryCrash)
	})
}

// TestSweeper settles and purges until its context ends, also after errors.
func TestSweeper(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := retried(semel.AtLeastOnce())
		o.Retention = 10 * time.Second
		op := plain("op", o)
		p, mem := owned(t, op)
		var calls []semel.Call
		for i := range 30 {
			calls = append(calls, op.Call(me, fmt.Sprint(i), "in"))
			do(t.Context(), p, calls[i], returns("v")).want(t, "v", false)
		}
		left := queued(t, p, op, "left")[0]
		crashAttempt(t, mem, op)
		s := check.Must(admin.NewSweeper(p, admin.SweeperOptions{Batch: 7}))(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		p.faults.Decide(failIf(fault{Before: errCut}, func(r request) bool { return r.Method == "Scan" || r.Method == "Purge" }))
		ran := make(chan error, 1)
		go func() { ran <- s.Run(ctx) }()
		pass(time.Minute) // a third of the lease between passes
		if n := p.faults.CallsOf("Scan"); n < 3 || n > 14 {
			t.Errorf("%d passes in a minute, want one in about ten seconds", n)
		}
		p.seen.want(t, event.StoreError)
		wantState(t, mem, left, store.InProgress)
		p.faults.Decide(nil)
		pass(20 * time.Second)
		wantState(t, mem, left, store.Pending)
		for _, c := range calls {
			wantState(t, mem, c, store.Absent)
		}
		stop()
		check.NoError(t, <-ran, "Run")
		before := p.faults.Calls()
		if err := s.Run(ctx); err != nil || p.faults.Calls() != before {
			t.Errorf("Run after the end of its context: %v, and the store was called", err)
		}
	})
}

// TestLongPurgeDoesNotDelayTheSweep: what dead workers left does not wait for
// the end of it.
func TestLongPurgeDoesNotDelayTheSweep(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: steady(9, 9), Retention: time.Minute})
		p, mem := owned(t, op)
		const old = 20
		for i := range old {
			do(t.Context(), p, op.Call(me, fmt.Sprint(i), "in"), returns("v")).want(t, "v", false)
		}
		pass(time.Hour)
		dead := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
		c := queued(t, p, op, "dead")[0]
		dequeued(t, dead, op, 1)
		dead.crash()
		p.faults.Decide(func(r request) fault {
			if r.Method == "Purge" {
				pass(10 * time.Second)
			}
			if r.Method == "Purge" && r.MethodN == old/2 {
				wantState(t, mem, c, store.Pending)
			}
			return fault{}
		})
		sweeper, err := admin.NewSweeper(p, admin.SweeperOptions{Every: 10 * time.Second, Batch: 1})
		check.Require(t, err, "NewSweeper")
		if err := sweeper.Pass(t.Context()); err != nil || p.faults.CallsOf("Purge") != old+1 {
			t.Errorf("Pass: %v, after %d batches, want %d", err, p.faults.CallsOf("Purge"), old+1)
		}
	})
}
