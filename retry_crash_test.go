package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// crashAttempt claims the waiting record in a process of its own, which then dies; its lease is
// over when it returns.
func crashAttempt(t *testing.T, mem *memory.Store, op semel.Declared) {
	t.Helper()
	p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
	dequeued(t, p, op, 1)
	p.crash()
	pass(time.Minute)
}

// TestCrashesAreCountedSeparately: errors, snoozes and interruptions as many as there
// may be are no crash, and crashes are no errors.
func TestCrashesAreCountedSeparately(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.Atomic(), 3, 3)
		for range 2 {
			work(t, p, op, p.run(fails(errBoom)))
			pass(time.Minute)
			work(t, p, op, fails(semel.Snooze(0)))
			ctx, hangUp := context.WithCancel(t.Context())
			workIn(ctx, t, p, op, p.run(func(context.Context) (string, error) { hangUp(); return "", context.Canceled }))
			crashAttempt(t, p.mem, op)
			check.Result(admin.Sweep(t.Context(), p, 10))(t, admin.Swept{Requeued: 1}, "Sweep")
		}
		got := progress(t, p.mem, call)
		if got.Errors != 2 || got.Snoozes != 2 || got.Ended != 6 {
			t.Errorf("%+v, want two errors, two snoozes, and six of eight attempts that said how they ended", got)
		}
		wantTries(t, got, admin.TryError, admin.TrySnooze, admin.TryInterrupted, admin.TryCrash,
			admin.TryError, admin.TrySnooze, admin.TryInterrupted, admin.TryCrash)
		work(t, p, op, p.run(returns("v"))).want(t, "v", false)
		if _, ok := admin.ProgressOf(wantState(t, p.mem, call, store.Succeeded)); ok {
			t.Error("a success speaks of its attempts")
		}
	})
}

// TestTooManyCrashes: the operation does not run again, and its fence is not
// raised, for every way to call it. The record is Failed if no attempt can have had
// an effect.
func TestTooManyCrashes(t *testing.T) {
	t.Parallel()
	for _, pc := range policies() {
		if !pc.again {
			continue
		}
		for how, ask := range map[string]func(t *testing.T, p *process, op *semel.Operation[string], c semel.Call) answer{
			"worker": func(t *testing.T, p *process, op *semel.Operation[string], _ semel.Call) answer {
				t.Helper()
				return work(t, p, op, never(t))
			},
			"direct call": func(t *testing.T, p *process, _ *semel.Operation[string], c semel.Call) answer {
				t.Helper()
				return do(t.Context(), p, c, never(t))
			},
		} {
			t.Run(pc.name+"/"+how, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					o := semel.OperationOptions[string]{Policy: pc.p, Retry: steady(1, 2)}
					if pc.name == "Fenced" {
						r := new(receiver)
						o.Policy = semel.Fenced(r.raise, r.look)
						defer r.want(t, "raise 2", "look")
					}
					op := plain("op", o)
					p, mem := owned(t, op)
					call := queued(t, p, op, "k")[0]
					crashAttempt(t, mem, op)
					sweepOne(t, p, call)
					attempts := dequeued(t, start(t, mem, semel.Options{}), op, 1)
					if _, err := attempts[0].Prepare(); err != nil {
						t.Errorf("Prepare after one crash: %v, want it to be run", err)
					}
					crashingHandler(t, attempts[0])
					sweepOne(t, p, call)
					a := ask(t, p, op, call)
					if pc.name == "Atomic" {
						wantTries(t, wantCode(t, a.err, "exhausted"), admin.TryCrash, admin.TryCrash, admin.TryInterrupted)
						wantState(t, mem, call, store.Failed)
						return
					}
					a.wantRunNow(t, store.Unknown, store.InDoubt)
					wantState(t, mem, call, store.InDoubt)
					wantTries(t, progress(t, mem, call), admin.TryCrash, admin.TryCrash, admin.TryInterrupted)
				})
			})
		}
	}
}

// crashingHandler lets the lease of an attempt expire.
func crashingHandler(t *testing.T, a *semel.Attempt) {
	t.Helper()
	pass(time.Minute)
	check.ErrorIs(t, context.Cause(a.Context()), semel.ErrLeaseLost, "its context ended with")
}

// TestTooManyCrashesBeforeATransaction: an inline one is not run either.
func TestTooManyCrashesBeforeATransaction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.Atomic(), 1, 2)
		crashAttempt(t, p.mem, op)
		sweepOne(t, p, call)
		crashAttempt(t, p.mem, op) // no sweeper has run
		a := doTx(t.Context(), p, call, neverTx(t))
		wantTries(t, wantCode(t, a.err, "exhausted"), admin.TryCrash, admin.TryInterrupted)
		wantState(t, p.mem, call, store.Failed)
		doTx(t.Context(), p, call, neverTx(t)).wantFailure(t, "2 attempts crashed")
	})
}

// TestTakeoversCountAsCrashes, without any sweeper.
func TestTakeoversCountAsCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := task(semel.Keyed(), 1, 2).Call(me, "k", "in")
		for range 2 {
			claimAndCrash(t, start(t, mem, semel.Options{}), call)
			pass(time.Minute)
		}
		do(t.Context(), p, call, never(t)).wantRunNow(t, store.Unknown, store.InDoubt)
	})
}

// TestAttemptThatNeverRanIsNoCrash: claims without an answer, and claims of an engine
// that closed.
func TestAttemptThatNeverRanIsNoCrash(t *testing.T) {
	type claim = func(t *testing.T, mem *memory.Store, op *semel.Operation[string], c semel.Call)
	lostClaim := func(f fault) claim {
		return func(t *testing.T, mem *memory.Store, _ *semel.Operation[string], c semel.Call) {
			t.Helper()
			p := start(t, mem, semel.Options{})
			p.faults.Decide(func(r request) fault {
				if len(r.Changes) == 1 && r.Changes[0].If.State == store.Pending && r.To() == store.InProgress {
					return f
				}
				return fault{}
			})
			do(t.Context(), p, c, never(t)).wantErr(t, semel.ErrUnavailable)
			pass(time.Minute)
		}
	}
	tests := map[string]claim{
		"claim of a direct call, applied":     lostClaim(fault{After: errCut}),
		"claim of a direct call, not applied": lostClaim(fault{Before: errCut}),
		"claim of a worker": func(t *testing.T, mem *memory.Store, op *semel.Operation[string], _ semel.Call) {
			t.Helper()
			p := start(t, mem, semel.Options{Operations: []semel.Declared{op}})
			p.faults.Decide(claiming(fault{After: errCut}))
			if _, err := adapter.Dequeue(t.Context(), p, op, 1); !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("Dequeue: %v, want ErrUnavailable", err)
			}
			p.faults.Decide(nil)
			dequeued(t, p, op, 1)[0].Abandon() // which is an error of its own
			pass(time.Minute)
		},
	}
	eachInBubble(t, tests, func(t *testing.T, live claim) {
		p, op, call := queuedTask(t, semel.Atomic(), 99, 1)
		for range 3 {
			live(t, p.mem, op, call)
		}
		if r := wantState(t, p.mem, call, store.Pending); r.Attempt < 3 {
			t.Errorf("the current attempt is %d, want none after the claims", r.Attempt)
		}
		pass(time.Hour)
		work(t, p, op, p.run(returns("v"))).want(t, "v", false)
	})
}

// TestRedriveResetsTheCounts: what was used up does not count any more once it was
// resolved that nothing happened.
func TestRedriveResetsTheCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 1, 1)
		resolve := func() {
			wantState(t, p.mem, call, store.InDoubt)
			check.Must(admin.Resolve(t.Context(), p, admin.Resolution{ID: call.ID(), To: store.Pending, Actor: "ann", Reason: "looked"}))(t)
		}
		crashAttempt(t, p.mem, op)
		sweepOne(t, p, call)
		work(t, p, op, never(t)).wantRunNow(t, store.Unknown, store.InDoubt)
		resolve()
		work(t, p, op, fails(errBoom)).wantRunNow(t, store.Unknown, store.InDoubt)
		resolve()
		got := progress(t, p.mem, call)
		wantTries(t, got, admin.TryCrash, admin.TryInterrupted, admin.TryError)
		if r := record(t, p.mem, call); got.Errors != 0 || got.Ended != r.Attempt || r.Tainted {
			t.Errorf("%+v after attempt %d, tainted %v; want it to begin anew", got, r.Attempt, r.Tainted)
		}
		work(t, p, op, returns("v")).want(t, "v", false)
	})
}
