package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// inTx runs fn in a transaction of the caller's own; an error rolls it back.
func inTx(t *testing.T, mem *memory.Store, fn func(tx *memory.Tx) error) error {
	t.Helper()
	_, err := mem.Atomic(t.Context(), store.ID{}, false,
		func(_ context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) { return nil, fn(tx) })
	return err
}

// enqueue enqueues call in a transaction of its own.
func enqueue(t *testing.T, p *process, mem *memory.Store, call semel.Call, delay time.Duration) {
	t.Helper()
	check.Require(t, inTx(t, mem, func(tx *memory.Tx) error {
		check.Result(semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{Delay: delay}))(t, true, "EnqueueTx")
		return nil
	}), "Atomic")
}

func TestDirectCallRunsTheEnqueuedRecord(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", queueable(d.o)).Call(me, "k", "the input")
		enqueue(t, p, mem, call, 0)
		r := wantState(t, mem, call, store.Pending)
		if got, want := string(r.Input), `"the input"`; got != want || r.Expire != 0 {
			t.Errorf("recorded the input %s, to expire in %v; want %s, never", got, r.Expire, want)
		}
		d.ask(t.Context(), p, call, returns("v")).want(t, "v", false)
		d.ask(t.Context(), p, call, never(t)).want(t, "v", true)
		if r := wantState(t, mem, call, store.Succeeded); r.Attempt != 1 || string(r.Input) != `"the input"` {
			t.Errorf("attempt %d succeeded, with the input %s; want 1 and what was enqueued", r.Attempt, r.Input)
		}
	})
}

// TestEnqueueTxIsAtomic.
func TestEnqueueTxIsAtomic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, queueable(semel.OperationOptions[string]{}))
		err := inTx(t, p.mem, func(tx *memory.Tx) error {
			check.Result(semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{}))(t, true, "EnqueueTx")
			wantState(t, p.mem, call, store.Absent) // other transactions do not see it yet
			return errBoom
		})
		if !errors.Is(err, errBoom) {
			t.Fatalf("Atomic: %v", err)
		}
		wantState(t, p.mem, call, store.Absent)
		enqueue(t, p, p.mem, call, 0)
		wantState(t, p.mem, call, store.Pending)
	})
}

// TestEnqueueWhileAnotherTransactionHoldsTheRecord: neither Enqueue nor EnqueueTx waits.
func TestEnqueueWhileAnotherTransactionHoldsTheRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, queueable(semel.OperationOptions[string]{}))
		refused := func(added bool, err error) {
			t.Helper()
			if added || !errors.Is(err, semel.ErrInProgress) || semel.RetryAfter(err) <= 0 {
				t.Errorf("got %v, %v, want ErrInProgress and a RetryAfter", added, err)
			}
		}
		_ = inTx(t, p.mem, func(outer *memory.Tx) error {
			check.Result(semel.EnqueueTx(t.Context(), p.Engine, outer, call, semel.EnqueueOptions{}))(t, true, "EnqueueTx")
			return inTx(t, p.mem, func(tx *memory.Tx) error {
				refused(semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{}))
				refused(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))
				do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
				return nil
			})
		})
	})
}

func TestEnqueueTxErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, call := soloCall(t, queueable(semel.OperationOptions[string]{}))
		_ = inTx(t, p.mem, func(tx *memory.Tx) error {
			_, err := semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{Delay: -1})
			wantField(t, err, "Delay")
			unstorable := semel.Define("op", semel.OperationOptions[func()]{Retry: &semel.Retry{}, Fingerprints: []func(func()) any{func(func()) any { return 1 }}})
			_, err = semel.EnqueueTx(t.Context(), p.Engine, tx, unstorable.Call(me, "k", nil), semel.EnqueueOptions{})
			wantField(t, err, "Input")
			for _, f := range []fault{{Before: errCut}, {Result: &store.SwapResult{Err: errCut}}} {
				p.faults.Decide(func(request) fault { return f })
				check.ResultIs(semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{}))(t, false, errCut, "EnqueueTx")
			}
			return errBoom
		})
		p.faults.Decide(nil)
		wantState(t, p.mem, call, store.Absent)
	})
}

// TestEnqueueTxOfAnExpiredKey: a late duplicate is not enqueued again either.
func TestEnqueueTxOfAnExpiredKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		op := plain("op", queueable(semel.OperationOptions[string]{KeyTime: semel.UUIDv7Time}))
		old := op.Call(me, uuidv7(time.Now()), "in")
		enqueue(t, p, mem, old, 0)
		pass(48 * time.Hour)
		gone := op.Call(me, uuidv7(time.Now().Add(-48*time.Hour-time.Second)), "in")
		_ = inTx(t, mem, func(tx *memory.Tx) error {
			check.Result(semel.EnqueueTx(t.Context(), p.Engine, tx, old, semel.EnqueueOptions{}))(t, false, "EnqueueTx again")
			check.ResultIs(semel.EnqueueTx(t.Context(), p.Engine, tx, gone, semel.EnqueueOptions{}))(t, false, semel.ErrKeyExpired, "EnqueueTx")
			_, err := semel.EnqueueTx(t.Context(), p.Engine, tx, op.Call(me, "no time", "in"), semel.EnqueueOptions{})
			wantField(t, err, "Key")
			return nil
		})
		wantState(t, mem, gone, store.Absent)
	})
}

// TestPendingTaskIsNotPurged: an attempt that was released, swept,
// resolved or never ran leaves what was enqueued as it was, for ever.
func TestPendingTaskIsNotPurged(t *testing.T) {
	keyed := semel.OperationOptions[string]{Policy: semel.Keyed()}
	atomic := semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: lease}
	refuted := func(t *testing.T, p *process, c semel.Call) {
		p.faults.Decide(commits(commitDropped()))
		doTx(t.Context(), p, c, puts("e", "v"))
	}
	type row struct {
		o    semel.OperationOptions[string]
		live func(t *testing.T, p *process, c semel.Call)
	}
	tests := map[string]row{
		"released": {keyed, func(t *testing.T, p *process, c semel.Call) {
			do(t.Context(), p, c, fails(semel.NotCommitted(errBoom)))
		}},
		"swept": {keyed, func(t *testing.T, p *process, c semel.Call) {
			claimAndCrash(t, start(t, p.mem, semel.Options{}), c)
			pass(time.Minute)
			sweepOne(t, p, c)
		}},
		"requeued": {keyed, func(t *testing.T, p *process, c semel.Call) {
			do(t.Context(), p, c, fails(errBoom))
		}},
		"resolved": {semel.OperationOptions[string]{}, func(t *testing.T, p *process, c semel.Call) {
			do(t.Context(), p, c, fails(errBoom))
			check.Must(admin.Resolve(t.Context(), p, admin.Resolution{ID: c.ID(), To: store.Pending, Actor: "ann", Reason: "looked"}))(t)
		}},
		"rolled back": {atomic, func(t *testing.T, p *process, c semel.Call) {
			doTx(t.Context(), p, c, failsAfter(errBoom))
		}},
		"refuted":        {atomic, refuted},
		"refuted inline": {semel.OperationOptions[string]{}, refuted},
		"claim given back": {keyed, func(t *testing.T, p *process, c semel.Call) {
			p.faults.Decide(func(r request) fault {
				if len(r.Changes) == 1 && r.Changes[0].If.State == store.Pending {
					return fault{After: errCut}
				}
				return fault{}
			})
			do(t.Context(), p, c, never(t)).wantErr(t, semel.ErrUnavailable)
			pass(time.Minute)
		}},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		op := plain("op", queueable(tt.o))
		p, mem := owned(t, op)
		call := op.Call(me, "k", "in")
		enqueue(t, p, mem, call, 0)
		tt.live(t, p, call)
		p.faults.Decide(nil)
		if r := wantState(t, mem, call, store.Pending); r.Attempt == 0 {
			t.Error("no attempt has claimed it")
		}
		pass(1000 * time.Hour)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 0, "Purge (want it to stay)")
		do(t.Context(), p, call, p.run(returns("v"))).want(t, "v", false)
		pass(1000 * time.Hour)
		check.Result(admin.Purge(t.Context(), p, 10))(t, 1, "Purge once it is done")
	})
}
