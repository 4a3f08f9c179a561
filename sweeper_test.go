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
)

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
				if swept.Healed != want || !errors.Is(err, errBoom) {
					t.Errorf("Sweep = %+v, %v, want %d healed, and why the others were not", swept, err, want)
				}
			}
		})
		if swept, _ := admin.Sweep(t.Context(), p, 2); swept.Healed != 1 {
			t.Errorf("Sweep = %+v, want the one healed that was held", swept)
		}
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
		p.faults.Decide(func(r request) fault {
			if r.Method == "Scan" || r.Method == "Purge" {
				return fault{Before: errCut}
			}
			return fault{}
		})
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
		if err := <-ran; err != nil {
			t.Errorf("Run: %v, want nil once its context has ended", err)
		}
		before := p.faults.Calls()
		if err := s.Run(ctx); err != nil || p.faults.Calls() != before {
			t.Errorf("Run after the end of its context: %v, and the store was called", err)
		}
	})
}

func TestSweeperErrorsNameTheField(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		_, err := admin.NewSweeper(p, admin.SweeperOptions{Every: -1})
		wantField(t, err, "Every")
		_, err = admin.NewSweeper(p, admin.SweeperOptions{Batch: -1})
		wantField(t, err, "Batch")
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
