package semel_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 9: after a finished effect whose outcome cannot be recorded, the caller
// receives success, an alarm is raised, and recording is retried with the same
// token. A result that cannot be stored becomes a tombstone. The operation runs
// again only if the policy says so.

// outageAfter returns v after an effect, during which the store fails with f.
func outageAfter(p *process, v string, f fault) handler {
	return func(context.Context) (string, error) {
		p.faults.Decide(func(request) fault { return f })
		return v, nil
	}
}

// storeOutages are the faults of a store outage.
func storeOutages() map[string]fault {
	return map[string]fault{"cut": {Before: errCut}, "no answer": {Hang: true}, "applied": {After: errCut}, "busy": {Busy: true}}
}

func TestRule09StoreOutageAfterTheEffect(t *testing.T) {
	eachInBubble(t, storeOutages(), func(t *testing.T, f fault) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{})
		do(t.Context(), p, call, outageAfter(p, "v", f)).want(t, "v", false)
		p.seen.want(t, event.Late)
		claimed := record(t, p.mem, call).Token
		p.faults.Decide(nil)
		pass(2 * time.Minute)
		p.seen.want(t, event.LateRecorded)
		r := wantState(t, p.mem, call, store.Succeeded)
		if r.Attempt != claimed.Attempt || r.Owner != claimed.Owner {
			t.Errorf("recorded as %+v, want the token of the claim %+v", r.Token, claimed)
		}
		do(t.Context(), p, call, never(t)).want(t, "v", true)
		do(t.Context(), other, call, never(t)).want(t, "v", true)
	})
}

// TestRule09HeartbeatsContinue while the outcome is not recorded, so that no takeover
// happens: here only ends of attempts fail.
func TestRule09HeartbeatsContinue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.Keyed()})
		p.faults.Decide(failTo(store.Succeeded, fault{Before: errCut}))
		do(t.Context(), p, call, returns("v")).want(t, "v", false)
		for range 10 {
			pass(lease)
			do(t.Context(), other, call, never(t)).wantErr(t, semel.ErrInProgress)
		}
		p.faults.Decide(nil)
		pass(time.Minute)
		do(t.Context(), other, call, never(t)).want(t, "v", true)
		swaps := p.faults.CallsOf("Swap")
		pass(10 * lease)
		if n := p.faults.CallsOf("Swap") - swaps; n != 0 {
			t.Errorf("%d writes after it was recorded, want the heartbeats to have ended", n)
		}
	})
}

// TestRule09DoubtIsSettledLate: the lease was over before the store was back, and another caller
// has recorded the doubt. The late leader settles it.
func TestRule09DoubtIsSettledLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{})
		do(t.Context(), p, call, outageAfter(p, "v", fault{Before: errCut})).want(t, "v", false)
		pass(2 * lease)
		do(t.Context(), other, call, never(t)).wantErr(t, semel.ErrInDoubt)
		p.faults.Decide(nil)
		pass(time.Minute)
		do(t.Context(), other, call, never(t)).want(t, "v", true)
		p.seen.want(t, event.LateRecorded)
	})
}

// TestRule09EffectOfASupersededAttempt: the same, but the policy has let another attempt run,
// which does not know of the effect. An operator learns of it.
func TestRule09EffectOfASupersededAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.AtLeastOnce()})
		do(t.Context(), p, call, outageAfter(p, "v", fault{Before: errCut})).want(t, "v", false)
		pass(2 * lease)
		do(t.Context(), other, call, func(context.Context) (string, error) {
			p.faults.Decide(nil)
			pass(time.Minute)
			p.seen.want(t, event.Conflict)
			p.seen.wantNone(t, event.LateRecorded)
			return "second", nil
		}).want(t, "second", false)
	})
}

// TestRule09OtherEndsAreRetriedToo: after an end without success the outcome is
// unknown, and is recorded late all the same.
func TestRule09OtherEndsAreRetriedToo(t *testing.T) {
	type row struct {
		p       semel.Policy
		err     error
		state   store.State
		tainted bool // the next attempt follows one with an unknown outcome
	}
	eachInBubble(t, map[string]row{
		"fail":    {semel.Hold(), semel.Final(errBoom), store.Failed, false},
		"release": {semel.Hold(), semel.NotCommitted(errBoom), store.Pending, false},
		"doubt":   {semel.Hold(), errBoom, store.InDoubt, false},
		"requeue": {semel.Keyed(), errBoom, store.Pending, true},
	}, func(t *testing.T, tt row) {
		p, call := soloWith(t, semel.Options{Lease: time.Hour}, semel.OperationOptions[string]{Policy: tt.p})
		a := do(t.Context(), p, call, func(context.Context) (string, error) { p.hang(); return "", tt.err })
		a.wantErr(t, semel.ErrOutcomeUnknown, errBoom)
		a.wantRunNow(t, store.Unknown, store.InProgress)
		p.faults.Decide(nil)
		pass(time.Minute)
		check.Equal(t, wantState(t, p.mem, call, tt.state).Tainted, tt.tainted, "tainted")
		p.seen.want(t, event.Late, event.LateRecorded)
	})
}

// TestRule09TooManyUnrecordedOutcomes: what has no place any more is alarmed; its lease
// then decides.
func TestRule09TooManyUnrecordedOutcomes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{MaxUnrecorded: 2, RecordTimeout: time.Second})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()})
		p.faults.Decide(func(r request) fault { return fault{Hang: r.To() == store.Succeeded} })
		var calls []semel.Call
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			calls = append(calls, op.Call(me, key, "in"))
			do(t.Context(), p, calls[len(calls)-1], returns("v")).want(t, "v", false)
		}
		late, dropped := p.seen.count(event.Late), p.seen.count(event.LateDropped)
		if late+dropped != len(calls) || late < 2 || dropped == 0 {
			t.Errorf("%d late and %d dropped, want at least the 2 that have a place, and %d in all", late, dropped, len(calls))
		}
		p.faults.Decide(nil)
		pass(10 * time.Minute)
		states := map[store.State]int{}
		for _, c := range calls {
			r := record(t, mem, c)
			states[r.State]++
			if r.State == store.InProgress && r.Due > 0 {
				t.Errorf("a dropped one has its lease for another %v, want its heartbeats ended", r.Due)
			}
		}
		if states[store.Succeeded] != late || states[store.InProgress] != dropped {
			t.Errorf("the records are %v, want the %d recorded and the %d left to their lease", states, late, dropped)
		}
	})
}

// TestRule09OneOutcomeDoesNotDelayOthers: the store never answers about one record; those
// of the others are written as soon as it answers about them.
func TestRule09OneOutcomeDoesNotDelayOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{RecordTimeout: time.Hour, Retention: 48 * time.Hour})
		op := plain("op", semel.OperationOptions[string]{})
		stuck, other := op.Call(me, "stuck", "in"), op.Call(me, "other", "in")
		locked := func(r request) bool { return r.To() == store.Succeeded && r.Changes[0].To.ID == stuck.ID() }
		p.faults.Decide(func(r request) fault { return fault{Hang: locked(r)} })
		do(t.Context(), p, stuck, returns("v")).want(t, "v", false)
		var late, answers atomic.Bool
		do(t.Context(), p, other, func(context.Context) (string, error) {
			p.faults.Decide(func(r request) fault {
				switch {
				case locked(r):
					answers.Store(late.Load()) // about the others, during the call about this one
					return fault{Hang: true}
				case !answers.Load():
					return fault{Before: errCut}
				}
				return fault{}
			})
			return "v", nil
		}).want(t, "v", false)
		p.seen.want(t, event.Late)
		for late.Store(true); !answers.Load(); {
			pass(time.Minute)
		}
		pass(time.Minute)
		wantState(t, mem, other, store.Succeeded)
		wantState(t, mem, stuck, store.InProgress)
		p.faults.Decide(nil)
		pass(2 * time.Hour)
		wantState(t, mem, stuck, store.Succeeded)
	})
}

// TestRule09CloseDrains: what is late is recorded before Close returns.
func TestRule09CloseDrains(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		do(t.Context(), p, call, outageAfter(p, "v", fault{Hang: true})).want(t, "v", false)
		time.AfterFunc(time.Minute, func() { p.faults.Decide(nil) })
		check.NoError(t, p.Close(t.Context()), "Close")
		wantState(t, p.mem, call, store.Succeeded)
	})
}

// TestRule09CloseGivesUp when its context ends; then the lease is not kept
// either, and the policy decides.
func TestRule09CloseGivesUp(t *testing.T) {
	eachInBubble(t, storeOutages(), func(t *testing.T, f fault) {
		p, mem := solo(t, semel.Options{})
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()})
		p.faults.Decide(failTo(store.Succeeded, f))
		for _, key := range []string{"a", "b", "c"} {
			do(t.Context(), p, op.Call(me, key, "in"), returns("v")).want(t, "v", false)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		check.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded, "Close")
		synctest.Wait()
		p.faults.Decide(nil)
		pass(2 * lease)
		check.Equal(t, p.faults.Calls(), 0, "calls of the store after Close gave up")
		for _, key := range []string{"a", "b", "c"} {
			if r := record(t, mem, op.Call(me, key, "in")); r.State == store.InProgress && r.Due > 0 {
				t.Errorf("the lease of %s is kept for another %v", key, r.Due)
			}
		}
	})
}

// TestRule09Tombstones: only the caller that ran the operation receives a result
// that cannot be stored; the others learn that it succeeded, and it does not run
// again.
func TestRule09Tombstones(t *testing.T) {
	large := strings.Repeat("x", 300)
	eachPair(t, entryPoints(), map[string]any{
		"too large":      large,
		"too large raw":  semel.Raw(large),
		"unmarshalable":  func() {},
		"a channel":      map[string]any{"c": make(chan int)},
		"said so":        adapter.Tombstone("it was streamed"),
		"said at length": adapter.Tombstone(strings.Repeat("long ", 100)),
	}, func(t *testing.T, d entryPoint, v any) {
		mem := memory.New(memory.Options{MaxOutcome: 250})
		p := start(t, mem, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		runs := 0
		fn := func(context.Context) (any, error) { runs++; return v, nil }
		if _, replayed, err := through(t.Context(), p, d, call, fn); err != nil || replayed {
			t.Errorf("the first caller got replayed %v, %v", replayed, err)
		}
		wantState(t, mem, call, store.Succeeded)
		p.seen.want(t, event.Tombstone)
		_, replayed, err := through(t.Context(), p, d, call, fn)
		if !errors.Is(err, semel.ErrResultUnavailable) || !replayed || runs != 1 {
			t.Errorf("the next caller got replayed %v, %v after %d runs, want ErrResultUnavailable after one", replayed, err, runs)
		}
		check.Equal(t, semel.VerdictOf(err), store.Committed, "VerdictOf(%v)", err)
	})
}

// TestRule09StoreRefusesTheResult although it promised to keep as much: the
// success is recorded all the same.
func TestRule09StoreRefusesTheResult(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{})
		p.faults.Decide(func(r request) fault {
			if r.To() == store.Succeeded && strings.Contains(string(r.Changes[0].To.Outcome), "poison") {
				return fault{Result: &store.SwapResult{Err: errBoom}}
			}
			return fault{}
		})
		do(t.Context(), p, call, returns("poison")).want(t, "poison", false)
		wantState(t, p.mem, call, store.Succeeded)
		do(t.Context(), p, call, never(t)).wantNoResult(t)
		p.seen.want(t, event.Tombstone)
	})
}

// TestUnrecordedOutcomeKeepsTheLease: the item renews its lease itself, so that a
// finished effect does not run again.
func TestUnrecordedOutcomeKeepsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 9)
		other := start(t, p.mem, semel.Options{Operations: []semel.Declared{op}})
		a := dequeuedOne(t, p, op)
		p.faults.Decide(failTo(store.Succeeded, fault{Before: errCut}))
		answerOf(a.End("v", nil)).want(t, "v", false)
		for range 10 {
			pass(10 * time.Second)
			check.Result(admin.Sweep(t.Context(), other, 10))(t, admin.Swept{}, "Sweep (want nothing freed)")
		}
		p.faults.Decide(nil)
		pass(time.Minute)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Attempt, 1, "attempt")
	})
}
