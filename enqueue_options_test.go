package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestEnqueueOptions: when it is due, and with which priority, as long as it waits
// and when it is run by a direct call.
func TestEnqueueOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		o        func() semel.EnqueueOptions
		due      time.Duration
		priority int8
	}{
		"none":         {func() semel.EnqueueOptions { return semel.EnqueueOptions{} }, 0, 0},
		"delay":        {func() semel.EnqueueOptions { return semel.EnqueueOptions{Delay: time.Hour} }, time.Hour, 0},
		"at":           {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Now().Add(time.Hour)} }, time.Hour, 0},
		"at, over":     {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Now().Add(-time.Hour)} }, 0, 0},
		"at, long ago": {func() semel.EnqueueOptions { return semel.EnqueueOptions{At: time.Unix(0, 0)} }, 0, 0},
		"lowest":       {func() semel.EnqueueOptions { return semel.EnqueueOptions{Priority: store.MinPriority} }, 0, -4},
		"highest":      {func() semel.EnqueueOptions { return semel.EnqueueOptions{Priority: store.MaxPriority} }, 0, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.AtLeastOnce()))
				p, mem := owned(t, op)
				call := op.Call(me, "k", "in")
				if added, err := semel.Enqueue(t.Context(), p, call, tt.o()); !added || err != nil {
					t.Fatalf("Enqueue = %v, %v, want it added", added, err)
				}
				r := wantState(t, mem, call, store.Pending)
				wantDue(t, r, tt.due)
				if r.Priority != tt.priority || r.Expire != 0 || r.Attempt != 0 {
					t.Errorf("%+v, want priority %d, nothing run, and no end", r, tt.priority)
				}
				if added, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{Priority: 1, Delay: time.Second}); added || err != nil {
					t.Errorf("Enqueue again = %v, %v, want nothing added", added, err)
				}
				wantDue(t, record(t, mem, call), tt.due)
				if tt.due > 0 {
					do(t.Context(), p, call, never(t)).wantErr(t, semel.ErrInProgress)
				}
				pass(tt.due)
				a := begin(t, p, call)
				check.Equal(t, a.Record().Priority, tt.priority, "claimed with priority")
				answerOf(a.End("v", nil)).want(t, "v", false)
				check.Equal(t, wantState(t, mem, call, store.Succeeded).Priority, tt.priority, "the priority")
			})
		})
	}
}

func TestEnqueueErrorsNameTheField(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		op := plain("op", retried(semel.AtLeastOnce()))
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

// TestEnqueueOverExistingRecords: a record of the same request is no error, one of
// another request is, and Enqueue does not wait for an open transaction.
func TestEnqueueOverExistingRecords(t *testing.T) {
	t.Parallel()
	for _, s := range existingStates() {
		t.Run(string(s), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				op := plain("op", retried(semel.AtLeastOnce()))
				p, mem := owned(t, op)
				createExisting(t, mem, op.Call(me, "k", "in"), s)
				check.Result(semel.Enqueue(t.Context(), p, op.Call(me, "k", "in"), semel.EnqueueOptions{}))(t, (s == nothing), "Enqueue")
				if added, err := semel.Enqueue(t.Context(), p, op.Call(me, "k", "other"), semel.EnqueueOptions{}); added || !errors.Is(err, semel.ErrMismatch) {
					t.Errorf("Enqueue of another input = %v, %v, want ErrMismatch", added, err)
				}
			})
		})
	}
	t.Run("an open transaction", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			p, mem := solo(t, semel.Options{})
			call := plain("op", retried(semel.AtLeastOnce())).Call(me, "k", "in")
			_ = inTx(t, mem, func(tx *memory.Tx) error {
				_, _ = semel.EnqueueTx(t.Context(), p.Engine, tx, call, semel.EnqueueOptions{})
				if added, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}); added || !errors.Is(err, semel.ErrInProgress) || semel.RetryAfter(err) <= 0 {
					t.Errorf("Enqueue = %v, %v, want ErrInProgress and a RetryAfter", added, err)
				}
				return errBoom
			})
		})
	})
}

// TestEnqueueErrors: with each of its calls. Asked for again it is there once.
func TestEnqueueErrors(t *testing.T) {
	t.Parallel()
	for name, f := range everyFault() {
		for k := range 4 {
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					op := plain("op", retried(semel.AtLeastOnce()))
					p, mem := owned(t, op)
					call := op.Call(me, "k", "in")
					p.faults.Decide(failCall(k+1, f))
					added, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{})
					check.Equal(t, added, (err == nil), "Enqueue: %v", err)
					p.faults.Decide(nil)
					if _, err := semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{}); err != nil {
						t.Errorf("Enqueue again: %v", err)
					}
					wantState(t, mem, call, store.Pending)
					work(t, p, op, returns("v")).want(t, "v", false)
				})
			})
		}
	}
}

// TestEnqueueWhileTheStoreIsDown says so.
func TestEnqueueWhileTheStoreIsDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		p.crash()
		call := plain("op", retried(semel.AtLeastOnce())).Call(me, "k", "in")
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
		op := plain("op", retried(semel.Atomic()))
		next := op.Call(me, "next", "in")
		closing, closed := make(chan struct{}), make(chan error, 1)
		first := later(func() answer {
			return doTx(t.Context(), p, op.Call(me, "first", "in"), func(ctx context.Context, tx *memory.Tx) (string, error) {
				<-closing
				_, err := semel.EnqueueTx(ctx, p.Engine, tx, next, semel.EnqueueOptions{})
				return "v", err
			})
		})
		synctest.Wait()
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
