package semel_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// errorCase is a way for an attempt of an operation with Retry to end in an error.
type errorCase struct {
	name   string
	err    error
	hangUp bool // the caller, or the worker's process, goes away meanwhile
	proven bool // that nothing was committed
	final  bool
	kind   admin.TryKind
	delay  time.Duration // its own; zero: the operation's
}

func errorCases() map[string]errorCase {
	const own = 3 * time.Second
	return byName(func(f errorCase) string { return f.name },
		errorCase{name: "unmarked", err: errBoom, kind: admin.TryError},
		errorCase{name: "NotCommitted", err: semel.NotCommitted(errBoom), proven: true, kind: admin.TryError},
		errorCase{name: "classified", err: fmt.Errorf("deep: %w", errRefused), proven: true, kind: admin.TryError},
		errorCase{name: "RetryIn", err: semel.RetryIn(errBoom, own), kind: admin.TryError, delay: own},
		errorCase{name: "RetryIn of NotCommitted", err: semel.RetryIn(semel.NotCommitted(errBoom), own), proven: true, kind: admin.TryError, delay: own},
		errorCase{name: "NotCommitted of RetryIn", err: semel.NotCommitted(semel.RetryIn(errBoom, own)), proven: true, kind: admin.TryError, delay: own},
		errorCase{name: "Snooze", err: semel.Snooze(own), proven: true, kind: admin.TrySnooze, delay: own},
		errorCase{name: "Final", err: semel.Final(errBoom), proven: true, final: true},
		errorCase{name: "Final of RetryIn", err: semel.Final(semel.RetryIn(errBoom, own)), proven: true, final: true},
		errorCase{name: "interrupted", err: context.Canceled, hangUp: true, kind: admin.TryInterrupted},
		errorCase{name: "interrupted, NotCommitted", err: semel.NotCommitted(context.Canceled), hangUp: true, proven: true, kind: admin.TryInterrupted})
}

// expectedRecord is the record after an attempt.
type expectedRecord struct {
	state   store.State
	tainted bool
	due     time.Duration
	errors  int
	code    string // of the failure
}

// leads is the table: after is how many errors there were before, of the two that
// are allowed.
func (f errorCase) leads(pc policyCase, after int) expectedRecord {
	proven := f.proven || pc.name == "Atomic"
	end := expectedRecord{errors: after}
	if f.kind == admin.TryError {
		end.errors++
	}
	spent := f.kind == admin.TryError && end.errors == 2
	end.due = f.delay
	if f.kind == admin.TryError && f.delay == 0 {
		end.due = time.Duration(end.errors) * 10 * time.Second
	}
	switch {
	case f.final:
		end.state = store.Failed
	case proven && spent:
		end.state, end.code = store.Failed, "exhausted"
	case proven:
		end.state = store.Pending
	case pc.found:
		end.state = store.Succeeded
	case pc.again && !spent:
		end.state, end.tainted = store.Pending, true
	default:
		end.state = store.InDoubt
	}
	return end
}

// TestErrorsWithRetry: for each policy, each error, the first of its kind
// and the last that is allowed, by a direct call and by a worker.
func TestErrorsWithRetry(t *testing.T) {
	eachPair(t, policies(), errorCases(), func(t *testing.T, pc policyCase, f errorCase) {
		for after := range 2 {
			for _, worker := range []bool{false, true} {
				t.Logf("after %d errors, worker %v", after, worker)
				f.run(t, pc, after, worker)
			}
		}
	})
}

func (f errorCase) run(t *testing.T, pc policyCase, after int, worker bool) {
	t.Helper()
	op := plain("op", semel.OperationOptions[string]{Policy: pc.p, Retry: steady(2, 9), Classify: classifies})
	p, mem := owned(t, op)
	call := op.Call(me, "k", "k")
	ask := func(ctx context.Context, fn handler) answer { return do(ctx, p, call, p.run(fn)) }
	if worker {
		queued(t, p, op, "k")
		ask = func(ctx context.Context, fn handler) answer { return workIn(ctx, t, p, op, p.run(fn)) }
	}
	for range after {
		ask(t.Context(), fails(semel.NotCommitted(errBoom))).wantRunNow(t, store.NotCommitted, store.Pending)
		pass(time.Minute)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	a := ask(ctx, func(context.Context) (string, error) {
		if f.hangUp {
			hangUp()
		}
		return "", f.err
	})
	want := f.leads(pc, after)
	f.wantAnswer(t, a, want)
	f.wantRecord(t, wantState(t, mem, call, want.state), want)
}

func (f errorCase) wantAnswer(t *testing.T, a answer, want expectedRecord) {
	t.Helper()
	switch {
	case want.state == store.Succeeded:
		a.want(t, "found", false)
	case want.code != "":
		if p := wantCode(t, a.err, want.code); p.Errors != 2 || len(p.Tries) != 2 {
			t.Errorf("its history is %+v, want two errors", p)
		}
	case want.state == store.Failed:
		a.wantFailure(t, errBoom.Error())
	case want.state == store.Pending && !want.tainted:
		a.wantErr(t, f.err)
		a.wantRunNow(t, store.NotCommitted, want.state)
	default:
		a.wantErr(t, f.err, semel.ErrOutcomeUnknown)
		a.wantRunNow(t, store.Unknown, want.state)
	}
}

func (f errorCase) wantRecord(t *testing.T, r store.Record, want expectedRecord) {
	t.Helper()
	check.Equal(t, r.Tainted, want.tainted, "tainted")
	if want.state == store.Pending {
		wantDue(t, r, want.due)
	}
	p, ok := admin.ProgressOf(r)
	check.Equal(t, ok, (want.state != store.Succeeded && !f.final), "%v says something of its attempts", r.State)
	if !ok {
		return
	}
	last := p.Tries[len(p.Tries)-1]
	if p.Errors != want.errors || p.Ended != r.Attempt || last.Kind != f.kind || last.Attempt != r.Attempt {
		t.Errorf("attempt %d led to %+v, want %d errors and the last one %q", r.Attempt, p, want.errors, f.kind)
	}
}

// TestInterruptionByShutdownIsNoError: the driver interrupts the transaction
// because its context has ended.
func TestInterruptionByShutdownIsNoError(t *testing.T) {
	eachTxMode(t, func(t *testing.T, s txMode) {
		s.o.Retry = steady(1, 1)
		p, call := soloCall(t, s.o)
		p.faults.Decide(everyCommit(fault{Rollback: store.ErrInterrupted}))
		for range 3 {
			ctx, stop := context.WithCancel(t.Context())
			s.ask(ctx, p, call, func(ctx context.Context, tx *memory.Tx) (string, error) {
				stop()
				return failsAfter(ctx.Err())(ctx, tx)
			}).wantRunNow(t, store.NotCommitted, store.Pending)
		}
		wantTries(t, progress(t, p.mem, call), admin.TryInterrupted, admin.TryInterrupted, admin.TryInterrupted)
		p.faults.Decide(nil)
		s.ask(t.Context(), p, call, puts("e", "v")).want(t, "v", false)
	})
}

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
	eachPair(t, txModes(), errorCases(), func(t *testing.T, s txMode, f errorCase) {
		for after := range 2 {
			for _, enqueued := range []bool{false, true} {
				t.Logf("after %d errors, enqueued %v", after, enqueued)
				f.runTx(t, s, after, enqueued)
			}
		}
	})
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
		p, call := soloWith(t, semel.Options{RecordTimeout: time.Second}, s.o)
		s.ask(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		pass(11 * time.Second)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 0, "Purge (want it to stay)")
		wantDue(t, wantState(t, p.mem, call, store.Pending), 0)
		pass(2 * time.Second)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge (want it to go)")
	})
}

// TestCommitErrorsWithRetry: the error counts once, also if recording it fails at
// first.
func TestCommitErrorsWithRetry(t *testing.T) {
	eachFault(t, commitFaults(), func(t *testing.T, f fault) {
		p, call := soloCall(t, semel.OperationOptions[string]{Retry: steady(2, 1)})
		p.faults.Decide(commits(f))
		doTx(t.Context(), p, call, failsAfter(errBoom)).wantRunNow(t, store.NotCommitted, store.Pending)
		r := wantState(t, p.mem, call, store.Pending)
		wantDue(t, r, 10*time.Second)
		if p := progress(t, p.mem, call); p.Errors != 1 || r.Attempt != 1 || p.Ended != 1 {
			t.Errorf("attempt %d led to %+v, want one error", r.Attempt, p)
		}
		wantEffect(t, p.mem, "e", false)
	})
}

// TestUncommittedTransactionCountsAsAnError: what the function wrote can never be committed,
// so it is an error of the function's, counted and delayed as one, and not tried forever.
func TestUncommittedTransactionCountsAsAnError(t *testing.T) {
	slow := func(ctx context.Context, _ *memory.Tx) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	interrupted := fault{Rollback: store.ErrInterrupted}
	type row struct {
		commit fault
		fn     txHandler
	}
	eachPair(t, txModes(), map[string]row{
		"the commit is refused":                     {commitRefused(), puts("e", "v")},
		"a timeout of the database":                 {interrupted, puts("e", "v")},
		"a timeout of the database and a failure":   {interrupted, failsAfter(semel.Final(errBoom))},
		"the deadline of the attempt's own context": {fault{}, slow},
	}, func(t *testing.T, s txMode, tt row) {
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
		abruptExits()["panic"].wantAbrupt(t, func() answer {
			return doTx(t.Context(), p, call, func(context.Context, *memory.Tx) (string, error) { panic("out of cheese") })
		})
		wantState(t, p.mem, call, store.Absent)
	})
}
