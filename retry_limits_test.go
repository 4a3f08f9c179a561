package semel_test

import (
	"context"
	"errors"
	"maps"
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
	type askFunc = func(t *testing.T, p *process, op *semel.Operation[string], c semel.Call) answer
	again := policies()
	maps.DeleteFunc(again, func(_ string, pc policyCase) bool { return !pc.again })
	eachPair(t, again, map[string]askFunc{
		"worker": func(t *testing.T, p *process, op *semel.Operation[string], _ semel.Call) answer {
			return work(t, p, op, never(t))
		},
		"direct call": func(t *testing.T, p *process, _ *semel.Operation[string], c semel.Call) answer {
			return do(t.Context(), p, c, never(t))
		},
	}, func(t *testing.T, pc policyCase, ask askFunc) {
		if pc.name == "Fenced" {
			r := new(receiver)
			pc.p = semel.Fenced(r.raise, r.look)
			defer r.want(t, "raise 2", "look")
		}
		p, op, call := queuedTask(t, pc.p, 1, 2)
		crashAttempt(t, p.mem, op)
		sweepOne(t, p, call)
		attempts := dequeued(t, start(t, p.mem, semel.Options{}), op, 1)
		check.NoError(t, check.Err(attempts[0].Prepare()), "Prepare after one crash")
		crashingHandler(t, attempts[0])
		sweepOne(t, p, call)
		a := ask(t, p, op, call)
		if pc.name == "Atomic" {
			wantTries(t, wantCode(t, a.err, "exhausted"), admin.TryCrash, admin.TryCrash, admin.TryInterrupted)
			wantState(t, p.mem, call, store.Failed)
			return
		}
		a.wantRunNow(t, store.Unknown, store.InDoubt)
		wantState(t, p.mem, call, store.InDoubt)
		wantTries(t, progress(t, p.mem, call), admin.TryCrash, admin.TryCrash, admin.TryInterrupted)
	})
}

// crashingHandler lets the lease of an attempt expire.
func crashingHandler(t *testing.T, a *semel.Attempt) {
	t.Helper()
	pass(time.Minute)
	check.ErrorIs(t, context.Cause(a.Context()), semel.ErrLeaseLost, "its context ended with")
}

// TestTooManyCrashesBeforeATransaction: an inline one is not run either, until a redrive,
// after which crashes are counted anew.
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
		check.Must(admin.Redrive(t.Context(), p, redrive(call)))(t)
		work(t, p, op, p.run(returns("v"))).want(t, "v", false)
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
			check.ErrorIs(t, check.Err(adapter.Dequeue(t.Context(), p, op, 1)), semel.ErrUnavailable, "Dequeue")
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

// TestRetryOptionsAreCopied: later changes by the caller have no effect.
func TestRetryOptionsAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := steady(2, 1)
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: r})
		r.MaxErrors, r.Delay = 1, nil
		p, mem := owned(t, op)
		call := queued(t, p, op, "k")[0]
		work(t, p, op, fails(errBoom))
		wantDue(t, record(t, mem, call), 10*time.Second)
	})
}

// TestRetryByDefault: ten errors with growing delays, at most an hour, that are
// never the same for all; three crashes.
func TestRetryByDefault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: &semel.Retry{}})
		p, mem := owned(t, op)
		call := queued(t, p, op, "k")[0]
		for n := range 9 {
			work(t, p, op, p.run(fails(errBoom))).wantRunNow(t, store.NotCommitted, store.Pending)
			mean := time.Second << n
			if due := record(t, mem, call).Due; due < mean/2 || due > mean*3/2 {
				t.Errorf("due in %v after %d errors, want about %v", due, n+1, mean)
			}
			pass(time.Hour)
		}
		got := wantCode(t, work(t, p, op, p.run(fails(errBoom))).err, "exhausted")
		if got.Errors != 10 || len(got.Tries) != 10 {
			t.Errorf("%+v, want ten errors", got)
		}
		crashed := queued(t, p, op, "crashes")[0]
		for range 3 {
			crashAttempt(t, mem, op)
			sweepOne(t, p, crashed)
		}
		wantCode(t, work(t, p, op, never(t)).err, "exhausted")
	})
}

// TestHistoryIsBounded: the last ten tries, a little of each error, and none of it
// where the store keeps less.
func TestHistoryIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op, call := queuedTask(t, semel.Atomic(), 15, 1)
		long := errors.New(string(make([]byte, 5000)))
		for range 14 {
			work(t, p, op, p.run(fails(long)))
			pass(time.Hour)
		}
		got := progress(t, p.mem, call)
		if got.Errors != 14 || len(got.Tries) != 10 || got.Tries[9].Attempt != 14 || len(got.Tries[9].Error) > 500 {
			t.Errorf("%d errors, %d tries, the last of attempt %d with %d bytes", got.Errors, len(got.Tries), got.Tries[9].Attempt, len(got.Tries[9].Error))
		}
		w := limitedOver(p.mem, func(c *store.Capabilities) { c.MaxOutcome = 300 })
		small := startOn(t, w, semel.Options{})
		work(t, small, op, small.run(fails(long))).wantErr(t)
		r := wantState(t, p.mem, call, store.Failed)
		if len(r.Outcome) > 300 {
			t.Errorf("%d bytes are stored, want no more than the store keeps", len(r.Outcome))
		}
	})
}

// TestSnoozeWithoutRetry: Snooze is proof, and not the operation's answer.
func TestSnoozeWithoutRetry(t *testing.T) {
	eachPair(t, entryPoints(), map[string]semel.OnError{"Release": semel.Release, "Keep": semel.Keep}, func(t *testing.T, d entryPoint, o semel.OnError) {
		d.o.OnError = o
		p, call := soloCall(t, d.o)
		a := d.ask(t.Context(), p, call, fails(semel.Snooze(time.Hour)))
		if semel.VerdictOf(a.err) != store.NotCommitted || semel.Snooze(-1).Error() != "semel: snoozed for 0s" {
			t.Errorf("got %v, want that nothing was done", a.err)
		}
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
	})
	if semel.RetryIn(nil, time.Second) != nil {
		t.Error("RetryIn makes an error of none")
	}
}

// TestRetryAddedToAnExistingOperation: attempts that ended before the operation
// had a Retry do not count as crashes.
func TestRetryAddedToAnExistingOperation(t *testing.T) {
	eachInBubble(t, map[string]semel.Policy{
		"Hold": semel.Hold(), "AtLeastOnce": semel.AtLeastOnce(), "Atomic": semel.Atomic(),
	}, func(t *testing.T, policy semel.Policy) {
		p, before := soloCall(t, semel.OperationOptions[string]{Policy: policy})
		for range 5 {
			do(t.Context(), p, before, fails(semel.NotCommitted(errBoom))).wantErr(t, errBoom)
		}
		op := plain("op", semel.OperationOptions[string]{Policy: policy, Retry: &semel.Retry{MaxCrashes: 2, MaxErrors: 2}})
		after := op.Call(me, "k", "in")
		p = start(t, p.mem, semel.Options{Operations: []semel.Declared{op}})
		if policy.String() == "AtLeastOnce" { // the first crash of this version: one more is left
			claimAndCrash(t, start(t, p.mem, semel.Options{}), after)
			pass(time.Minute)
		}
		do(t.Context(), p, after, p.run(returns("done"))).want(t, "done", false)
	})
}

// TestTwoDefinitionsOfOneName: an engine that was given an operation runs no other
// definition of its name, because records know operations by their names.
func TestTwoDefinitionsOfOneName(t *testing.T) {
	t.Parallel()
	one, other := plain("create", semel.OperationOptions[string]{}), semel.Define("create", semel.OperationOptions[int]{})
	mem := memory.New(memory.Options{})
	wantField(t, check.Err(semel.New(mem, semel.Options{Operations: []semel.Declared{one, other}})), "Operations")
	p := start(t, mem, semel.Options{Operations: []semel.Declared{one, one}})
	do(t.Context(), p, one.Call(me, "k", "in"), returns("done")).want(t, "done", false)
	do(t.Context(), p, other.Call(me, "k2", 1), never(t)).wantErr(t, semel.ErrInvalid)
	doTx(t.Context(), p, other.Call(me, "k3", 1), neverTx(t)).wantErr(t, semel.ErrInvalid)
	wantField(t, check.Err(semel.Enqueue(t.Context(), p, other.Call(me, "k4", 1), semel.EnqueueOptions{})), "Operations")
}

// TestDirectCallWithRetryIsFinishedByAWorker: a direct call of an operation with
// Retry stores the input that a worker needs to finish it. An Enqueue of the same
// key reports that the record exists.
func TestDirectCallWithRetryIsFinishedByAWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.Atomic(), 9, 9)
		call := op.Call(me, "k", "the input")
		doTx(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		check.Result(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))(t, false, "Enqueue (it is there)")
		if r := wantState(t, p.mem, call, store.Pending); string(r.Input) != `"the input"` || r.Expire != 0 {
			t.Errorf("%s waits with the input %q and expires in %v, want what it was called with, never", r.ID, r.Input, r.Expire)
		}
		pass(time.Minute)
		work(t, p, op, p.run(returns("v"))).want(t, "v", false)
	})
}

// TestRedeliveredCallIsNotQueued: a call that an external system redelivers stores
// no input for workers, and cannot be enqueued.
func TestRedeliveredCallIsNotQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: &semel.Retry{Redelivered: true}})
		p, mem := owned(t, op)
		call := op.Call(me, "k", "the input")
		wantField(t, check.Err(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{})), "Redelivered")
		wantField(t, adapter.CheckWorker(p, op, true), "Redelivered")
		doTx(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		if r := wantState(t, mem, call, store.Pending); len(r.Input) > 0 || r.Expire <= 0 {
			t.Errorf("%s waits with the input %q and expires in %v, want none and some day", r.ID, r.Input, r.Expire)
		}
	})
}
