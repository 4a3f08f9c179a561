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

func errorCases() []errorCase {
	const own = 3 * time.Second
	return []errorCase{
		{name: "unmarked", err: errBoom, kind: admin.TryError},
		{name: "NotCommitted", err: semel.NotCommitted(errBoom), proven: true, kind: admin.TryError},
		{name: "classified", err: fmt.Errorf("deep: %w", errRefused), proven: true, kind: admin.TryError},
		{name: "RetryIn", err: semel.RetryIn(errBoom, own), kind: admin.TryError, delay: own},
		{name: "RetryIn of NotCommitted", err: semel.RetryIn(semel.NotCommitted(errBoom), own), proven: true, kind: admin.TryError, delay: own},
		{name: "NotCommitted of RetryIn", err: semel.NotCommitted(semel.RetryIn(errBoom, own)), proven: true, kind: admin.TryError, delay: own},
		{name: "Snooze", err: semel.Snooze(own), proven: true, kind: admin.TrySnooze, delay: own},
		{name: "Final", err: semel.Final(errBoom), proven: true, final: true},
		{name: "Final of RetryIn", err: semel.Final(semel.RetryIn(errBoom, own)), proven: true, final: true},
		{name: "interrupted", err: context.Canceled, hangUp: true, kind: admin.TryInterrupted},
		{name: "interrupted, NotCommitted", err: semel.NotCommitted(context.Canceled), hangUp: true, proven: true, kind: admin.TryInterrupted},
	}
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
	t.Parallel()
	for _, pc := range policies() {
		for _, f := range errorCases() {
			for after := range 2 {
				for _, worker := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/%d/worker %v", pc.name, f.name, after, worker), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { f.run(t, pc, after, worker) })
					})
				}
			}
		}
	}
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
