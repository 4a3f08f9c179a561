package semel_test

import (
	"context"
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
	eachFault(t, commitFaults(), func(t *testing.T, f fault) {
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
}

// TestUncommittedTransactionCountsAsAnError: what the function wrote can never be committed,
// so it is an error of the function's, counted and delayed as one, and not tried forever.
func TestUncommittedTransactionCountsAsAnError(t *testing.T) {
	slow := func(ctx context.Context, _ *memory.Tx) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	interrupted := fault{Rollback: store.ErrInterrupted}
	for name, tt := range map[string]struct {
		commit fault
		fn     txHandler
	}{
		"the commit is refused":                     {commitRefused(), puts("e", "v")},
		"a timeout of the database":                 {interrupted, puts("e", "v")},
		"a timeout of the database and a failure":   {interrupted, failsAfter(semel.Final(errBoom))},
		"the deadline of the attempt's own context": {fault{}, slow},
	} {
		t.Run(name, func(t *testing.T) {
			eachTxMode(t, func(t *testing.T, s txMode) {
				s.o.Retry = steady(2, 9)
				p, call := soloCall(t, s.o)
				p.faults.Decide(everyCommit(tt.commit))
				ask := func() answer {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					return s.ask(ctx, p, call, tt.fn)
				}
				ask().wantRunNow(t, store.NotCommitted, store.Pending)
				wantDue(t, wantState(t, p.mem, call, store.Pending), 10*time.Second)
				wantTries(t, progress(t, p.mem, call), admin.TryError)
				pass(time.Minute)
				wantTries(t, wantCode(t, ask().err, "exhausted"), admin.TryError, admin.TryError)
				wantState(t, p.mem, call, store.Failed)
				wantEffect(t, p.mem, "e", false)
			})
		})
	}
}

// TestUnknownCommitDoesNotCountAsAnError: it counts neither as an error nor as a
// crash, whether it was applied or not.
func TestUnknownCommitDoesNotCountAsAnError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(1, 1)
		p, call := soloCall(t, s.o)
		for range 3 {
			p.faults.Decide(commits(commitDropped()))
			s.ask(t.Context(), p, call, puts("e", "v")).wantRunNow(t, store.NotCommitted, store.Pending)
			pass(time.Minute)
		}
		wantTries(t, progress(t, p.mem, call), admin.TryInterrupted, admin.TryInterrupted, admin.TryInterrupted)
		p.faults.Decide(commits(commitApplied()))
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
		wantEffect(t, p.mem, "e", true)
	})
}

// TestPanicInATransactionRollsBack, not even a try: it is the process that
// ends, as far as anybody can tell.
func TestPanicInATransactionRollsBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, semel.OperationOptions[string]{Retry: steady(1, 1)})
		abruptExits()[0].wantAbrupt(t, func() answer {
			return doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { panic("out of cheese") })
		})
		wantState(t, p.mem, call, store.Absent)
	})
}
