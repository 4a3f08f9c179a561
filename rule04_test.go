package semel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 4: time that is compared is the store's. A leader's context ends when its
// last confirmed heartbeat is older than the lease.

const lease = 30 * time.Second // the default

// untilLost runs until the context ends, and returns after how long that was.
func untilLost(t *testing.T, began time.Time, took *time.Duration) handler {
	return func(ctx context.Context) (string, error) {
		<-ctx.Done()
		*took = time.Since(began)
		check.ErrorIs(t, context.Cause(ctx), semel.ErrLeaseLost, "the context's cause")
		return "v", nil
	}
}

func TestRule04BlackHoledStoreEndsTheContext(t *testing.T) {
	eachInBubble(t, map[string]fault{"no answer": {Hang: true}, "cut": {Before: errCut}, "busy": {Busy: true}, "refused": {Result: &store.SwapResult{Err: errBoom}}}, func(t *testing.T, f fault) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(func(request) fault { return f })
			defer p.faults.Decide(nil)
			return wait(ctx)
		}).want(t, "v", false)
		check.Equal(t, took, lease, "the context ended after")
		check.Equal(t, p.seen.count(event.LeaseLost), 1, "LeaseLost")
	})
}

// TestRule04LeaseCountsFromWhenTheRequestWasSent: an answer to a claim or to a heartbeat that took
// long does not prolong the lease by as much. The store may have counted it from when it was sent.
func TestRule04LeaseCountsFromWhenTheRequestWasSent(t *testing.T) {
	eachInBubble(t, map[string]bool{"the claim": false, "the first heartbeat": true}, func(t *testing.T, beat bool) {
		p, call := soloWith(t, semel.Options{RecordTimeout: time.Minute}, semel.OperationOptions[string]{})
		gate := make(chan struct{})
		var took time.Duration
		wait, want := untilLost(t, time.Now(), &took), lease
		slow := func() {
			p.faults.Decide(func(r request) fault {
				if r.MethodN == 1 {
					return fault{Gate: gate}
				}
				return fault{Hang: true}
			})
			time.AfterFunc(14*time.Second, func() { close(gate) })
		}
		if !beat {
			slow()
		}
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			defer p.faults.Decide(nil)
			if beat {
				slow()
				want += 10 * time.Second // when it was sent
			}
			return wait(ctx)
		})
		check.Equal(t, took, want, "the context ended after")
	})
}

// TestRule04OneHeartbeatWithoutAnswer: the one that is lost does not keep the
// next from being sent.
func TestRule04OneHeartbeatWithoutAnswer(t *testing.T) {
	eachInBubble(t, map[string]fault{"no answer": {Hang: true}, "no answer, applied": {Mute: true}, "cut": {Before: errCut}}, func(t *testing.T, f fault) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(failIf(f, func(r request) bool { return r.MethodN%2 == 1 }))
			pass(10 * lease)
			return "v", context.Cause(ctx)
		}).want(t, "v", false)
		p.seen.wantNone(t, event.LeaseLost)
	})
}

// TestRule04SupersededLeaderIsCanceled: the next heartbeat finds out.
func TestRule04SupersededLeaderIsCanceled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		var took time.Duration
		wait := untilLost(t, time.Now(), &took)
		a := do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			setInDoubt(t, p.mem, call)
			return wait(ctx)
		})
		check.Equal(t, took, 10*time.Second, "the context ended after")
		a.want(t, "v", false) // and the doubt is settled by its leader
		p.seen.want(t, event.LeaseLost, event.Settled)
	})
}

// TestRule04HeartbeatsKeepTheLease for ten leases, and others do not get in.
func TestRule04HeartbeatsKeepTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.Keyed()})
		leader := later(func() answer {
			return do(t.Context(), p, call, func(ctx context.Context) (string, error) {
				pass(10 * lease)
				return "v", context.Cause(ctx)
			})
		})
		for range 40 {
			synctest.Wait()
			if record(t, p.mem, call).State != store.Succeeded {
				do(t.Context(), other, call, never(t)).wantErr(t, semel.ErrInProgress)
			}
			pass(lease / 4)
		}
		(<-leader).want(t, "v", false)
	})
}

// TestRule04OutcomeAfterTheLeaseWasOver: expiry only permits a takeover. Without
// one, the leader's end is valid.
func TestRule04OutcomeAfterTheLeaseWasOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Keyed()})
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.hang()
			pass(5 * lease)
			p.faults.Decide(nil)
			return "v", nil
		}).want(t, "v", false)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 1, "attempt: succeeded")
	})
}

// TestRule04NoAbsoluteTimeLeavesTheEngine: a store with a wrong clock behaves like
// one with a right clock, and receives the durations of the settings.
func TestRule04NoAbsoluteTimeLeavesTheEngine(t *testing.T) {
	eachInBubble(t, map[string]time.Duration{
		"right": 0, "an hour ahead": time.Hour, "an hour behind": -time.Hour, "years off": -100_000 * time.Hour,
	}, func(t *testing.T, off time.Duration) {
		mem := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(off) }})
		p := start(t, mem, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()}).Call(me, "k", "in")
		claimAndCrash(t, start(t, mem, semel.Options{}), call)
		pass(lease - 1)
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
		pass(1)
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			pass(2 * lease)
			return "v", context.Cause(ctx)
		}).want(t, "v", false)
		for _, c := range p.faults.Changes() {
			if due := c.To.Due; due != 0 && due != lease {
				t.Errorf("%v → %v is due in %v, want the lease or nothing", c.If.State, c.To.State, due)
			}
			if expire := c.To.Expire; expire != 0 && expire != 24*time.Hour {
				t.Errorf("%v → %v expires in %v, want the retention or never", c.If.State, c.To.State, expire)
			}
		}
		pass(24*time.Hour - 1)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 0, "Purge within the retention")
		pass(1)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge after the retention")
	})
}
