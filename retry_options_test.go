package semel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

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
	t.Parallel()
	for name, o := range map[string]semel.OnError{"Release": semel.Release, "Keep": semel.Keep} {
		t.Run(name, func(t *testing.T) {
			eachEntryPoint(t, func(t *testing.T, d entryPoint) {
				d.o.OnError = o
				p, call := soloCall(t, d.o)
				a := d.ask(t.Context(), p, call, fails(semel.Snooze(time.Hour)))
				if semel.VerdictOf(a.err) != store.NotCommitted || semel.Snooze(-1).Error() != "semel: snoozed for 0s" {
					t.Errorf("got %v, want that nothing was done", a.err)
				}
				d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
			})
		})
	}
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
	_, err := semel.New(mem, semel.Options{Operations: []semel.Declared{one, other}})
	wantField(t, err, "Operations")
	p := start(t, mem, semel.Options{Operations: []semel.Declared{one, one}})
	do(t.Context(), p, one.Call(me, "k", "in"), returns("done")).want(t, "done", false)
	do(t.Context(), p, other.Call(me, "k2", 1), never(t)).wantErr(t, semel.ErrInvalid)
	doTx(t.Context(), p, other.Call(me, "k3", 1), neverTx(t)).wantErr(t, semel.ErrInvalid)
	_, err = semel.Enqueue(t.Context(), p, other.Call(me, "k4", 1), semel.EnqueueOptions{})
	wantField(t, err, "Operations")
}

// TestEnqueueRejectsOperationsWithoutRetry: no worker runs them, so the call would
// wait forever.
func TestEnqueueRejectsOperationsWithoutRetry(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	op := plain("mail", semel.OperationOptions[string]{})
	_, err := semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), semel.EnqueueOptions{})
	wantField(t, err, "Retry")
	check.Equal(t, record(t, mem, op.Call(me, "k", "in")).State, store.Absent, "the record")
}
