package semel_test

import (
	"context"
	"fmt"
	"math"
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

func retried(p semel.Policy) semel.OperationOptions[string] {
	return semel.OperationOptions[string]{Policy: p, Retry: steady(9, 9)}
}

// running dequeues n calls that were enqueued for it.
func running(t *testing.T, p *process, op *semel.Operation[string], n int) []*semel.Attempt {
	t.Helper()
	for i := range n {
		queued(t, p, op, fmt.Sprint("k", i))
	}
	return dequeued(t, p, op, n)
}

// wantAlive checks that the contexts of attempts go on, or why they ended.
func wantAlive(t *testing.T, attempts ...*semel.Attempt) {
	t.Helper()
	for _, a := range attempts {
		if a.Context().Err() != nil {
			t.Errorf("%s: its context ended with %v, want it to go on", a.Call().Key(), context.Cause(a.Context()))
		}
	}
}

func wantCause(t *testing.T, a *semel.Attempt, want error) {
	t.Helper()
	check.ErrorIs(t, context.Cause(a.Context()), want, "%s: its context ended with", a.Call().Key())
}

// takeOverRecord lets another attempt take over the record of an attempt.
func takeOverRecord(t *testing.T, mem *memory.Store, a *semel.Attempt) store.Record {
	t.Helper()
	to := record(t, mem, a.Call())
	was := to.Token
	to.State, to.Owner, to.Due = store.Pending, to.Owner+1, 0
	answers, err := mem.Swap(t.Context(), []store.Change{{If: was, To: to}})
	if err != nil || answers[0].Token != to.Token {
		t.Fatalf("Swap = %v, %v", answers, err)
	}
	return to
}

// TestRenewUsesOneRequest: nothing else does, and without it they are lost.
func TestRenewUsesOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		attempts := running(t, p, op, 5)
		p.faults.Decide(nil)
		for range 9 {
			pass(20 * time.Second)
			adapter.RenewLeases(t.Context(), p, attempts)
		}
		if swaps, gets := p.faults.CallsOf("Swap"), p.faults.CallsOf("Get"); swaps != 9 || gets != 9 {
			t.Errorf("%d Swaps and %d Gets for 9 beats of 5, want one of each", swaps, gets)
		}
		wantAlive(t, attempts...)
		for _, a := range attempts {
			if r := record(t, p.mem, a.Call()); r.Token != a.Token() || r.Due != lease {
				t.Errorf("the lease of %v is %v, want the attempt's own for a whole lease", r.Token, r.Due)
			}
		}
		p.faults.Decide(nil)
		pass(29 * time.Second)
		wantAlive(t, attempts...)
		pass(2 * time.Second)
		for _, a := range attempts {
			wantCause(t, a, semel.ErrLeaseLost)
		}
		adapter.RenewLeases(t.Context(), p, attempts)
		adapter.RenewLeases(t.Context(), p, nil)
		check.Equal(t, p.faults.Calls(), 0, "the store was called: times for expired leases and for none")
		p.seen.want(t, event.LeaseLost)
	})
}

// bounded starts a process over a store with batches of two, with five attempts that run.
func bounded(t *testing.T) (*process, []*semel.Attempt) {
	t.Helper()
	op := task(semel.AtLeastOnce(), 9, 9)
	p := startOn(t, limited(func(c *store.Capabilities) { c.MaxBatch = 2 }), semel.Options{})
	var attempts []*semel.Attempt
	for i := range 5 {
		queued(t, p, op, fmt.Sprint(i))
		attempts = append(attempts, dequeuedOne(t, p, op))
	}
	return p, attempts
}

// TestRenewIsBoundedByTheBatch of the store.
func TestRenewIsBoundedByTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, attempts := bounded(t)
		p.faults.Decide(nil)
		pass(20 * time.Second)
		adapter.RenewLeases(t.Context(), p, attempts)
		check.Equal(t, p.faults.CallsOf("Swap"), 3, "Swaps for 5 attempts, 2 at a time")
		pass(20 * time.Second)
		wantAlive(t, attempts...)
	})
}

// TestRenewAfterReclaimBySameWorker: the same worker has claimed it again, and does not
// know yet that its first attempt is over. It finds out, and its neighbours are not disturbed.
func TestRenewAfterReclaimBySameWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		attempts := running(t, p, op, 2)
		takeOverRecord(t, p.mem, attempts[0])
		again := dequeued(t, p, op, 1)[0]
		for _, order := range [][]*semel.Attempt{{attempts[1], again, attempts[0]}, {attempts[0], again, attempts[1], again}} {
			pass(20 * time.Second)
			p.faults.Decide(nil)
			adapter.RenewLeases(t.Context(), p, order)
			check.Equal(t, p.faults.CallsOf("Swap"), 1, "Swaps")
			wantCause(t, attempts[0], semel.ErrLeaseLost)
			wantAlive(t, again, attempts[1])
		}
		p.seen.wantNone(t, event.StoreError)
		check.ErrorIs(t, check.Err(attempts[0].End("v", nil)), semel.ErrInProgress, "End of the lost one")
		answerOf(attempts[1].End("v", nil)).want(t, "v", false)
	})
}

// TestRenewDuringAnEnd: the attempt's own outcome is no loss.
func TestRenewDuringAnEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		a := running(t, p, op, 1)[0]
		p.faults.Decide(func(r request) fault { return fault{Mute: r.To() == store.Succeeded && r.MethodN == 1} })
		ended := blocked(func() answer { return answerOf(a.End("v", nil)) })
		wantState(t, p.mem, a.Call(), store.Succeeded)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		wantAlive(t, a)
		(<-ended).want(t, "v", false)
		synctest.Wait() // the end took its whole time limit, so it is recorded once more
		p.faults.Decide(nil)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		check.Equal(t, p.faults.Calls(), 0, "the store was called: times for one that has ended")
		p.seen.wantNone(t, event.LeaseLost, event.Fenced)
	})
}

// TestRenewEndsWithMaxRun.
func TestRenewEndsWithMaxRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := retried(semel.AtLeastOnce())
		o.MaxRun = time.Minute
		op := plain("op", o)
		p, mem := owned(t, op)
		a := running(t, p, op, 1)[0]
		for range 5 {
			pass(10 * time.Second)
			adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		}
		wantAlive(t, a)
		if r := record(t, mem, a.Call()); r.Due != 10*time.Second {
			t.Errorf("the lease goes on for %v, want what is left of max run", r.Due)
		}
		pass(10 * time.Second)
		synctest.Wait()
		wantCause(t, a, semel.ErrLeaseLost)
		adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
		_, _ = a.End("", errBoom)
		if got := progress(t, mem, a.Call()); got.Errors != 1 {
			t.Errorf("%+v, want its max run counted as an error", got)
		}
	})
}

// TestRenewWithLostReply: the renewal waits at most for a heartbeat, and no lease
// is lost that the store still has.
func TestRenewWithLostReply(t *testing.T) {
	eachInBubble(t, map[string]fault{
		"no answer": {Hang: true}, "applied, no answer": {Mute: true}, "cut": {Before: errCut}, "busy": {Busy: true},
	}, func(t *testing.T, f fault) {
		o := retried(semel.AtLeastOnce())
		o.Lease, o.Heartbeat = 3*time.Second, time.Second
		op := plain("op", o)
		p, _ := owned(t, op)
		attempts := running(t, p, op, 2)
		p.faults.Decide(func(request) fault { return f })
		began := time.Now()
		adapter.RenewLeases(t.Context(), p, attempts)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v, want no longer than a heartbeat", took)
		}
		wantAlive(t, attempts...)
		pass(1900 * time.Millisecond)
		p.faults.Decide(nil)
		wantAlive(t, attempts...)
		adapter.RenewLeases(t.Context(), p, attempts)
		pass(2 * time.Second)
		wantAlive(t, attempts...)
		pass(2 * time.Second)
		wantCause(t, attempts[0], semel.ErrLeaseLost)
	})
}

// TestRenewWithinATransaction that keeps every other writer out, this renewal too:
// it is as good as one.
func TestRenewWithinATransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := task(semel.Atomic(), 9, 9)
		p := startOn(t, limited(func(c *store.Capabilities) { c.Exclusion = store.ExcludesAll }), semel.Options{})
		queued(t, p, op, "k")
		a := dequeuedOne(t, p, op)
		_, err := semel.InTx(a.Context(), p.Engine, func(context.Context, *memory.Tx) (string, error) {
			p.faults.Decide(nil)
			for range 10 {
				pass(20 * time.Second)
				adapter.RenewLeases(t.Context(), p, []*semel.Attempt{a})
				wantAlive(t, a)
			}
			check.Equal(t, p.faults.Calls(), 0, "the store was called: times by an exclusive transaction")
			return "v", nil
		})
		answerOf(a.End(nil, err)).want(t, "v", false)
	})
}

// TestEachLeaseIsRenewedAtItsOwnInterval: leases of other lengths, and attempts that end, do not
// change the interval at which the lease of an attempt is renewed.
func TestEachLeaseIsRenewedAtItsOwnInterval(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		const each = 20
		beats := []time.Duration{time.Hour, time.Second, 7 * time.Second, time.Minute}
		run := []*semel.Attempt{begin(t, p, plain("long", semel.OperationOptions[string]{Lease: math.MaxInt64}).Call(me, "k", "in"))}
		for n := range each {
			for _, beat := range beats {
				op := plain("every-"+beat.String(), semel.OperationOptions[string]{Lease: 3 * beat, Heartbeat: beat})
				run = append(run, begin(t, p, op.Call(me, fmt.Sprint(n), "in")))
				answerOf(begin(t, p, op.Call(me, fmt.Sprint(n, " ends"), "in")).End("v", nil)).want(t, "v", false)
			}
			pass(time.Millisecond)
		}
		const long = 2*time.Hour + 500*time.Millisecond
		pass(long)
		got := make(map[string]int)
		for _, c := range p.faults.Changes() {
			if c.If == c.To.Token && c.To.State == store.InProgress {
				got[c.To.Operation]++
			}
		}
		for _, beat := range beats {
			check.Equal(t, got["every-"+beat.String()], each*int(long/beat), "heartbeats at intervals of %v", beat)
		}
		wantAlive(t, run...)
		for _, a := range run {
			a.Abandon()
		}
	})
}
