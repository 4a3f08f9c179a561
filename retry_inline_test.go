package semel_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// failsAfter is a transaction's function that leaves an effect and then fails.
func failsAfter(err error) txHandler {
	return func(ctx context.Context, tx *memory.Tx) (string, error) {
		_, _ = puts("e", "v")(ctx, tx)
		return "", err
	}
}

// TestErrorsWithRetryInATransaction: the same table, where a rollback is
// proof of everything; also of a call that was enqueued before.
func TestErrorsWithRetryInATransaction(t *testing.T) {
	t.Parallel()
	for _, s := range txModes() {
		for _, f := range errorCases() {
			for after := range 2 {
				for _, enqueued := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/enqueued %v", s.name, f.name, after, enqueued), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { f.runTx(t, s, after, enqueued) })
					})
				}
			}
		}
	}
}

func (f errorCase) runTx(t *testing.T, s txMode, after int, enqueued bool) {
	t.Helper()
	s.o.Retry = steady(2, 9)
	s.o.Retry.Redelivered = !enqueued
	op := plain("op", s.o)
	p, mem := owned(t, op)
	call := op.Call(me, "k", "k")
	if enqueued {
		queued(t, p, op, "k")
	}
	for range after {
		s.ask(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		s.ask(t.Context(), p, call, neverTx(t)).wantErr(t, semel.ErrInProgress) // not due
		pass(time.Minute)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	a := s.ask(ctx, p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
		if f.hangUp {
			hangUp()
		}
		return failsAfter(f.err)(ctx, tx)
	})
	want := f.leads(policyCase{name: "Atomic"}, after)
	f.wantAnswer(t, a, want)
	r := wantState(t, mem, call, want.state)
	f.wantRecord(t, r, want)
	wantEffect(t, mem, "e", false)
	if waits := want.state == store.Pending && !enqueued; (r.Expire > 0) != (waits || want.state.Final() && !admin.IsDeadLetter(r)) {
		t.Errorf("%v expires in %v", r.State, r.Expire)
	}
}

// TestNothingThatWaitsIsPurgedBeforeItIsDue, however short the retention.
func TestNothingThatWaitsIsPurgedBeforeItIsDue(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry, s.o.Retention = steady(9, 9), 2*time.Second
		s.o.Retry.Redelivered = true
		p, mem := solo(t, semel.Options{RecordTimeout: time.Second})
		call := plain("op", s.o).Call(me, "k", "in")
		s.ask(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		pass(11 * time.Second)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 0, "Purge (want it to stay)")
		wantDue(t, wantState(t, mem, call, store.Pending), 0)
		pass(2 * time.Second)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge (want it to go)")
	})
}

// TestCommitErrorsWithRetry: the error counts once, also if recording it fails at
// first.
func TestCommitErrorsWithRetry(t *testing.T) {
	t.Parallel()
	for _, f := range []fault{commitApplied(), commitDropped(), commitRefused(), commitNoted()} {
		t.Run(f.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				call := plain("op", semel.OperationOptions[string]{Retry: steady(2, 1)}).Call(me, "k", "in")
				p.faults.Decide(commits(f))
				doTx(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
				r := wantState(t, mem, call, store.Pending)
				wantDue(t, r, 10*time.Second)
				if p := progress(t, mem, call); p.Errors != 1 || r.Attempt != 1 || p.Ended != 1 {
					t.Errorf("attempt %d led to %+v, want one error", r.Attempt, p)
				}
				wantEffect(t, mem, "e", false)
			})
		})
	}
}

// TestRejectedCommitWithRetry: what the function wrote can never be committed, so it is
// an error of the function's, counted and delayed as one, and in the end over.
func TestRejectedCommitWithRetry(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(2, 9)
		p, mem := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		p.faults.Decide(everyCommit(commitRefused()))
		a := s.ask(t.Context(), p, call, puts("e", "v"))
		a.wantRunNow(t, store.NotCommitted, store.Pending)
		wantDue(t, wantState(t, mem, call, store.Pending), 10*time.Second)
		wantTries(t, progress(t, mem, call), admin.TryError)
		pass(time.Minute)
		wantTries(t, wantCode(t, s.ask(t.Context(), p, call, puts("e", "v")).err, "exhausted"), admin.TryError, admin.TryError)
		wantState(t, mem, call, store.Failed)
		wantEffect(t, mem, "e", false)
	})
}

// TestUnknownCommitDoesNotCountAsAnError: it counts neither as an error nor as a
// crash, whether it was applied or not.
func TestUnknownCommitDoesNotCountAsAnError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(1, 1)
		p, mem := solo(t, semel.Options{})
		call := plain("op", s.o).Call(me, "k", "in")
		for range 3 {
			p.faults.Decide(commits(commitDropped()))
			s.ask(t.Context(), p, call, puts("e", "v")).wantRunNow(t, store.NotCommitted, store.Pending)
			pass(time.Minute)
		}
		wantTries(t, progress(t, mem, call), admin.TryInterrupted, admin.TryInterrupted, admin.TryInterrupted)
		p.faults.Decide(commits(commitApplied()))
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
		wantEffect(t, mem, "e", true)
	})
}

// TestTaintedAttemptNeverFails: an attempt of an earlier program version with
// another policy has an unknown effect. A rollback of a later attempt proves
// nothing about it.
func TestTaintedAttemptNeverFails(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"error": errBoom, "final": semel.Final(errBoom)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem := solo(t, semel.Options{})
				before := plain("op", semel.OperationOptions[string]{Policy: semel.AtLeastOnce()}).Call(me, "k", "in")
				do(t.Context(), p, before, fails(errBoom)).wantRunNow(t, store.Unknown, store.Pending)
				call := plain("op", semel.OperationOptions[string]{Policy: semel.Atomic(), Retry: steady(2, 9)}).Call(me, "k", "in")
				for n := range 4 {
					doTx(t.Context(), p, call, failsAfter(err)).wantRunNow(t, store.Unknown, store.Pending)
					if r := wantState(t, mem, call, store.Pending); r.Due <= 0 || !r.Tainted {
						t.Errorf("try %d leads to %+v, want it tainted, and not due yet", n, r)
					}
					pass(time.Hour)
				}
				if p := progress(t, mem, call); p.Errors != 4 {
					t.Errorf("%+v, want four errors", p)
				}
				doTx(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
			})
		})
	}
}

// TestPanicInATransactionRollsBack, not even a try: it is the process that
// ends, as far as anybody can tell.
func TestPanicInATransactionRollsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Retry: steady(1, 1)}).Call(me, "k", "in")
		abruptExits()[0].wantAbrupt(t, func() answer {
			return doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { panic("out of cheese") })
		})
		wantState(t, mem, call, store.Absent)
	})
}

// TestStoreOutageDuringAFailure: the caller learns of the rollback, and the count
// is lost with the store.
func TestStoreOutageDuringAFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Retry: steady(1, 1)}).Call(me, "k", "in")
		p.faults.Decide(func(r request) fault {
			if r.Method == "Atomic" {
				return commitRefused()
			}
			return fault{Hang: true}
		})
		a := doTx(t.Context(), p, call, failsAfter(errBoom))
		a.wantRunNow(t, store.NotCommitted, store.Absent)
		if !errors.Is(a.err, errBoom) || !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the function's error and the store's", a.err)
		}
		p.faults.Decide(nil)
		wantState(t, mem, call, store.Absent)
	})
}
