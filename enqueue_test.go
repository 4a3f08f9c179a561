package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
			wantField(t, check.Err(semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{Delay: -1})), "Delay")
			unstorable := semel.Define("op", semel.OperationOptions[func()]{Retry: &semel.Retry{}, Fingerprints: []func(func()) any{func(func()) any { return 1 }}})
			_, err := semel.EnqueueTx(t.Context(), p.Engine, tx, unstorable.Call(me, "k", nil), semel.EnqueueOptions{})
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

// TestEnqueueOptions: the record keeps its due time and its priority while it waits, and when a direct
// caller runs it.
func TestEnqueueOptions(t *testing.T) {
	type row struct {
		o        func() semel.EnqueueOptions
		due      time.Duration
		priority int8
	}
	tests := map[string]row{
		"none":         {func() semel.EnqueueOptions { return semel.EnqueueOptions{} }, 0, 0},
		"delay":        {func() semel.EnqueueOptions { return semel.EnqueueOptions{Delay: time.Hour} }, time.Hour, 0},
		"at":           {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Now().Add(time.Hour)} }, time.Hour, 0},
		"at, over":     {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Now().Add(-time.Hour)} }, 0, 0},
		"at, long ago": {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Unix(0, 0)} }, 0, 0},
		"lowest":       {func() semel.EnqueueOptions { return semel.EnqueueOptions{Priority: store.MinPriority} }, 0, -4},
		"highest":      {func() semel.EnqueueOptions { return semel.EnqueueOptions{Priority: store.MaxPriority} }, 0, 4},
	}
	eachInBubble(t, tests, func(t *testing.T, tt row) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		call := op.Call(me, "k", "in")
		check.Result(semel.Enqueue(t.Context(), p, call, tt.o()))(t, true, "Enqueue")
		r := wantState(t, p.mem, call, store.Pending)
		wantDue(t, r, tt.due)
		if r.Priority != tt.priority || r.Expire != 0 || r.Attempt != 0 {
			t.Errorf("%+v, want priority %d, nothing run, and no end", r, tt.priority)
		}
		check.Result(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{Priority: 1, Delay: time.Second}))(t, false, "Enqueue again")
		wantDue(t, record(t, p.mem, call), tt.due)
		if tt.due > 0 {
			do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
		}
		pass(tt.due)
		a := begin(t, p, call)
		check.Equal(t, a.Record().Priority, tt.priority, "claimed with priority")
		answerOf(a.End("v", nil)).want(t, "v", false)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Priority, tt.priority, "the priority")
	})
}

func TestEnqueueRejected(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := task(semel.AtLeastOnce(), 9, 9)
		for _, tt := range []struct {
			field string
			o     semel.EnqueueOptions
		}{
			{"Delay", semel.EnqueueOptions{Delay: -1}},
			{"At", semel.EnqueueOptions{Delay: 1, At: time.Now()}},
			{"Priority", semel.EnqueueOptions{Priority: 5}},
			{"Priority", semel.EnqueueOptions{Priority: -5}},
			{"Priority", semel.EnqueueOptions{Priority: 256}},
		} {
			wantField(t, check.Err(semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), tt.o)), tt.field)
		}
		wantField(t, check.Err(semel.Enqueue(t.Context(), p, semel.Call{}, semel.EnqueueOptions{})), "Call")
		wantField(t, check.Err(semel.Enqueue(t.Context(), p, op.Call(me, "", "in"), semel.EnqueueOptions{})), "Key")
		_, err := semel.Enqueue(t.Context(), p, plain("op", semel.OperationOptions[string]{Retention: 1}).Call(me, "k", "in"), semel.EnqueueOptions{})
		wantField(t, err, "Retention")
		_, err = semel.Enqueue(t.Context(), p, theCall, semel.EnqueueOptions{})
		wantField(t, err, "Retry") // without it no worker runs the call, which would wait forever
		check.Equal(t, p.faults.CallsOf("Swap"), 0, "the store received: changes")
		p.crash()
		_, err = semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), semel.EnqueueOptions{})
		check.ErrorIs(t, err, semel.ErrUnavailable, "Enqueue while the store is down")
	})
}

// TestEnqueueOverExistingRecords: a record of the same request is no error, one of another
// request is, and neither is changed.
func TestEnqueueOverExistingRecords(t *testing.T) {
	eachExisting(t, func(t *testing.T, s existingState) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		same, other := op.Call(me, "k", "in"), op.Call(me, "k", "other")
		createExisting(t, p.mem, same, s)
		before := record(t, p.mem, same)
		_ = inTx(t, p.mem, func(tx *memory.Tx) error {
			for _, first := range []bool{true, false} { // again in the same transaction
				check.Result(semel.EnqueueTx(t.Context(), p.Engine, tx, same, semel.EnqueueOptions{}))(t, first && s == nothing, "EnqueueTx")
			}
			check.ResultIs(semel.EnqueueTx(t.Context(), p.Engine, tx, other, semel.EnqueueOptions{}))(t, false, semel.ErrMismatch, "EnqueueTx of another input")
			return errBoom // which rolls back
		})
		for _, first := range []bool{true, false} {
			check.Result(semel.Enqueue(t.Context(), p, same, semel.EnqueueOptions{}))(t, first && s == nothing, "Enqueue")
		}
		check.ResultIs(semel.Enqueue(t.Context(), p, other, semel.EnqueueOptions{}))(t, false, semel.ErrMismatch, "Enqueue of another input")
		if after := record(t, p.mem, same); s != nothing && !cmp.Equal(before, after) {
			t.Errorf("the record changed:\n%s", cmp.Diff(before, after))
		}
	})
}

// TestEnqueueWhileClosing: a running operation may still enqueue in its own
// transaction; other calls are refused.
func TestEnqueueWhileClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		op := task(semel.Atomic(), 9, 9)
		next := op.Call(me, "next", "in")
		closing, closed := make(chan struct{}), make(chan error, 1)
		first := blocked(func() answer {
			return doTx(t.Context(), p, op.Call(me, "first", "in"), func(ctx context.Context, tx *memory.Tx) (string, error) {
				<-closing
				_, err := semel.EnqueueTx(ctx, p.Engine, tx, next, semel.EnqueueOptions{})
				return "v", err
			})
		})
		go func() { closed <- p.Close(t.Context()) }()
		synctest.Wait()
		check.ErrorIs(t, check.Err(semel.Enqueue(t.Context(), p, next, semel.EnqueueOptions{})), semel.ErrClosed, "Enqueue")
		close(closing)
		(<-first).want(t, "v", false)
		check.NoError(t, <-closed, "Close")
		wantState(t, mem, next, store.Pending)
	})
}
