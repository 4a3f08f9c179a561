package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestEnqueueOptions: when it is due, and with which priority, as long as it waits
// and when it is run by a direct call.
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

func TestEnqueueErrorsNameTheField(t *testing.T) {
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
			_, err := semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), tt.o)
			wantField(t, err, tt.field)
		}
		_, err := semel.Enqueue(t.Context(), p, semel.Call{}, semel.EnqueueOptions{})
		wantField(t, err, "Call")
		_, err = semel.Enqueue(t.Context(), p, op.Call(me, "", "in"), semel.EnqueueOptions{})
		wantField(t, err, "Key")
		_, err = semel.Enqueue(t.Context(), p, plain("op", semel.OperationOptions[string]{Retention: 1}).Call(me, "k", "in"), semel.EnqueueOptions{})
		wantField(t, err, "Retention")
		check.Equal(t, p.faults.CallsOf("Swap"), 0, "the store received: changes")
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

// TestEnqueueErrors: with each of its calls. Asked for again it is there once.
func TestEnqueueErrors(t *testing.T) {
	eachFaultyCall(t, 4, func(t *testing.T, f fault, k int) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 9)
		call := op.Call(me, "k", "in")
		p.faults.Decide(failCall(k, f))
		added, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{})
		check.Equal(t, added, (err == nil), "Enqueue: %v", err)
		p.faults.Decide(nil)
		check.Must(semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}))(t)
		wantState(t, p.mem, call, store.Pending)
		work(t, p, op, returns("v")).want(t, "v", false)
	})
}

// TestEnqueueWhileTheStoreIsDown says so.
func TestEnqueueWhileTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.crash()
		call := task(semel.AtLeastOnce(), 9, 9).Call(me, "k", "in")
		if _, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}); !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("Enqueue: %v, want ErrUnavailable", err)
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
		if _, err := semel.Enqueue(t.Context(), p, next, semel.EnqueueOptions{}); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("Enqueue: %v, want ErrClosed", err)
		}
		close(closing)
		(<-first).want(t, "v", false)
		check.NoError(t, <-closed, "Close")
		wantState(t, mem, next, store.Pending)
	})
}
