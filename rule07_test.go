package semel_test

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// Rule 7: a panic, runtime.Goexit or a swallowed error is not evidence. A panic
// continues after the record is in a true state.

// abruptExit is a way for a function to end without returning.
type abruptExit struct {
	stop func()
	// panics is the value of the panic.
	panics any
}

func abruptExits() map[string]abruptExit {
	return map[string]abruptExit{
		"panic":  {stop: func() { panic("out of cheese") }, panics: "out of cheese"},
		"Goexit": {stop: runtime.Goexit},
	}
}

// wantAbrupt runs ask on a goroutine of its own, and checks that it ends there
// as a does, without an answer.
func (a abruptExit) wantAbrupt(t *testing.T, ask func() answer) {
	t.Helper()
	done := make(chan any, 1)
	go func() {
		returned := false
		defer func() {
			p := recover()
			if returned {
				p = "it returned"
			}
			done <- p
		}()
		ask()
		returned = true
	}()
	check.Equal(t, <-done, a.panics, "it ended with")
}

// eachAbruptExit runs test in a bubble for each way not to return.
func eachAbruptExit(t *testing.T, test func(t *testing.T, a abruptExit)) {
	t.Helper()
	eachInBubble(t, abruptExits(), test)
}

// wantFree checks that nothing of an attempt that ended abruptly continues: no
// heartbeat, and no in-flight call that other callers of the key wait for.
func wantFree(t *testing.T, p *process) {
	t.Helper()
	synctest.Wait()
	before := p.faults.CallsOf("Swap")
	pass(10 * lease)
	check.Equal(t, p.faults.CallsOf("Swap")-before, 0, "more writes after it ended (no attempt is running)")
}

func TestRule07InDo(t *testing.T) {
	eachPair(t, policies(), abruptExits(), func(t *testing.T, pc policyCase, ab abruptExit) {
		p, call := soloCall(t, semel.OperationOptions[string]{
			Policy: pc.p, OnError: semel.Keep, Classify: func(error) store.Verdict { return store.NotCommitted }, // it is not called
		})
		ab.wantAbrupt(t, func() answer {
			return do(t.Context(), p, call, func(context.Context) (string, error) { ab.stop(); return "v", nil })
		})
		wantAfterAbrupt(t, p, p.mem, call, pc)
	})
}

// wantAfterAbrupt checks the record after an attempt with an unknown effect, and
// the result of the next call.
func wantAfterAbrupt(t *testing.T, p *process, mem *memory.Store, call semel.Call, pc policyCase) {
	t.Helper()
	switch {
	case pc.found:
		wantState(t, mem, call, store.Succeeded)
		do(t.Context(), p, call, never(t)).want(t, "found", true)
	case pc.name == "Atomic": // without InTx the attempt may have had an effect elsewhere
		check.Equal(t, wantState(t, mem, call, store.Pending).Tainted, true, "tainted")
		do(t.Context(), p, call, p.run(returns("again"))).want(t, "again", false)
	case pc.again:
		if r := wantState(t, mem, call, store.Pending); r.Due > 0 || !r.Tainted {
			t.Errorf("it waits for %v, tainted %v; want it due and tainted", r.Due, r.Tainted)
		}
		do(t.Context(), p, call, p.run(returns("again"))).want(t, "again", false)
		if r := record(t, mem, call); r.Attempt != 2 || !r.Tainted {
			t.Errorf("attempt %d, tainted %v, succeeded; want a tainted second one", r.Attempt, r.Tainted)
		}
	default:
		wantState(t, mem, call, store.InDoubt)
		do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInDoubt)
	}
	wantFree(t, p)
}

func TestRule07InATransaction(t *testing.T) {
	eachPair(t, txModes(), abruptExits(), func(t *testing.T, s txMode, ab abruptExit) {
		s.o.OnError = semel.Keep
		p, call := soloCall(t, s.o)
		ab.wantAbrupt(t, func() answer {
			return s.ask(t.Context(), p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				_, _ = puts("e", "v")(ctx, tx)
				ab.stop()
				return "v", nil
			})
		})
		wantEffect(t, p.mem, "e", false)
		check.Equal(t, wantState(t, p.mem, call, s.rolledBack()).Tainted, false, "tainted")
		s.ask(t.Context(), p, call, puts("e", "again")).want(t, "again", false)
		wantFree(t, p)
	})
}

// TestRule07AfterTheOutcome: after the transaction has committed, the operation has
// succeeded, whatever else its function does.
func TestRule07AfterTheOutcome(t *testing.T) {
	eachAbruptExit(t, func(t *testing.T, ab abruptExit) {
		p, call := soloCall(t, semel.OperationOptions[string]{Policy: semel.Atomic()})
		ab.wantAbrupt(t, func() answer {
			return do(t.Context(), p, call, func(ctx context.Context) (string, error) {
				check.NoError(t, check.Err(semel.InTx(ctx, p.Engine, puts("e", "v"))), "InTx")
				ab.stop()
				return "", nil
			})
		})
		wantState(t, p.mem, call, store.Succeeded)
		p.seen.want(t, event.AfterOutcome)
		do(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestRule07InTheOperationsOwnFunctions: if a function of the operation does not
// return, the key is free in this process, the heartbeats stop, and the record
// claims nothing unproven.
func TestRule07InTheOperationsOwnFunctions(t *testing.T) {
	eachPair(t, insides(), abruptExits(), func(t *testing.T, in inside, ab abruptExit) {
		stop := true
		trip := func() {
			if stop {
				ab.stop()
			}
		}
		p, call := soloCall(t, in.o(trip))
		createExisting(t, p.mem, call, in.createExisting)
		ab.wantAbrupt(t, func() answer { return in.ask(t.Context(), p, call, trip) })
		wantState(t, p.mem, call, in.state)
		stop = false
		wantFree(t, p)
		a := do(t.Context(), p, call, p.run(returns("again")))
		if in.then == nil {
			a.want(t, "again", false)
		} else {
			a.wantErr(t, in.then)
		}
	})
}

// inside is a place where the engine calls a function of the operation.
type inside struct {
	createExisting existingState
	o              func(trip func()) semel.OperationOptions[string]
	ask            func(ctx context.Context, p *process, c semel.Call, trip func()) answer
	state          store.State // that is true after it did not return
	then           error       // that the next call gets, when every lease is over; nil: it runs
}

func insides() map[string]inside {
	type options = semel.OperationOptions[string]
	failing := func(ctx context.Context, p *process, c semel.Call, _ func()) answer {
		return do(ctx, p, c, fails(errBoom))
	}
	running := func(ctx context.Context, p *process, c semel.Call, _ func()) answer {
		return do(ctx, p, c, returns("v"))
	}
	probing := func(trip func()) options {
		return options{Policy: semel.Heal(func(context.Context, semel.Scope, string) (any, bool, error) { trip(); return nil, false, nil })}
	}
	fencing := func(raise, look func()) options {
		return options{Policy: semel.Fenced(
			func(context.Context, semel.Scope, string, uint32) error { raise(); return nil },
			func(context.Context, semel.Scope, string) (any, bool, error) { look(); return nil, false, nil },
		)}
	}
	fine := func() {}
	return map[string]inside{
		"probe of a follower": {live, probing, running, store.InProgress, semel.ErrInDoubt},
		"probe of a leader":   {nothing, probing, failing, store.InProgress, semel.ErrInDoubt},
		"raise":               {expired, func(trip func()) options { return fencing(trip, fine) }, running, store.Pending, nil},
		"look":                {expired, func(trip func()) options { return fencing(fine, trip) }, running, store.Pending, nil},
		"Classify": {nothing, func(trip func()) options {
			return options{Classify: func(error) store.Verdict { trip(); return store.Unknown }}
		}, failing, store.InProgress, semel.ErrInDoubt},
		"marshaling": {nothing, func(func()) options { return options{} }, endMarshaling, store.InProgress, semel.ErrInDoubt},
		"AdaptWith":  {nothing, func(func()) options { return options{Policy: semel.Atomic()} }, inTxEncoding, store.Pending, nil},
	}
}

// panickingResult is a result that panics when it is marshaled.
type panickingResult struct{ trip func() }

func (v panickingResult) MarshalJSON() ([]byte, error) { v.trip(); return json.Marshal("v") }

func endMarshaling(ctx context.Context, p *process, c semel.Call, trip func()) answer {
	_, _, err := semel.Do(ctx, p, c, func(context.Context) (panickingResult, error) { return panickingResult{trip}, nil })
	return answer{err: err}
}

func inTxEncoding(ctx context.Context, p *process, c semel.Call, trip func()) answer {
	return do(ctx, p, c, func(ctx context.Context) (string, error) {
		a, _ := semel.AttemptOf(ctx)
		a.AdaptWith(adapts{encode: func(v any) (any, error) { trip(); return v, nil }})
		return semel.InTx(ctx, p.Engine, puts("e", "v"))
	})
}

// TestRule07FollowersOfAnAttemptThatPanicked are answered, one of them by
// running it.
func TestRule07FollowersOfAnAttemptThatPanicked(t *testing.T) {
	points := entryPoints()
	delete(points, "Do") // its record is in doubt
	eachPair(t, points, abruptExits(), func(t *testing.T, d entryPoint, ab abruptExit) {
		p, call := soloWith(t, semel.Options{Wait: time.Minute}, d.o)
		var followers []<-chan answer
		var runs counted
		ab.wantAbrupt(t, func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) {
				for range 20 {
					followers = append(followers, d.later(t, p, call, runs.of(returns("again"))))
				}
				ab.stop()
				return "", nil
			})
		})
		for _, f := range followers {
			if a := <-f; a.err != nil || a.v != "again" {
				t.Errorf("a follower got %q, %v, want the answer of the one that ran", a.v, a.err)
			}
		}
		runs.want(t, 1)
	})
}

// TestRule07SwallowedErrorOfATransaction: a function that continues after its
// transaction was superseded has not succeeded.
func TestRule07SwallowedErrorOfATransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, other, call := pairCall(t, semel.OperationOptions[string]{Policy: semel.Atomic()})
		do(t.Context(), p, call, func(ctx context.Context) (string, error) {
			p.faults.Decide(failOn("Swap", fault{Before: errCut}))
			pass(2 * lease)
			do(t.Context(), other, call, other.run(returns("winner"))).want(t, "winner", false)
			if _, err := semel.InTx(ctx, p.Engine, puts("zombie", "v")); err == nil {
				t.Error("the zombie's transaction went through")
			}
			p.faults.Decide(nil)
			return "as if nothing had happened", nil
		}).want(t, "winner", true)
		wantEffect(t, p.mem, "zombie", false)
	})
}
