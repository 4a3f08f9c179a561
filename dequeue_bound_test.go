package semel_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// TestDequeueHasADeadline: a store that claims records and then does not answer
// neither prevents their attempts nor lets their leases expire.
func TestDequeueHasADeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.Keyed(), 9, 9)
		queued(t, p, op, "k")
		answerOf(dequeued(t, p, op, 1)[0].End(nil, semel.Snooze(0))).wantRunNow(t, store.NotCommitted, store.Pending)
		p.faults.Decide(func(r request) fault { return fault{Hang: r.Method == "Get"} })
		a := dequeued(t, p, op, 1)[0]
		check.NoError(t, context.Cause(a.Context()), "it is given when it has ended already")
		p.faults.Decide(nil)
		answerOf(a.End("v", nil)).want(t, "v", false)
	})
}

// TestDequeueReleasesWithinOneTimeout: for any number of records that were claimed
// when the worker was stopped and the store became silent.
func TestDequeueReleasesWithinOneTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.Keyed(), 9, 9)
		queued(t, p, op, "a", "b", "c", "d")
		ctx, stop := context.WithCancel(t.Context())
		p.faults.Decide(func(r request) fault {
			if r.Method == "Dequeue" {
				stop()
			}
			return fault{Hang: r.Method == "Swap"}
		})
		begun := time.Now()
		if attempts, err := adapter.Dequeue(ctx, p, op, 4); err == nil {
			t.Errorf("Dequeue = %d attempts, want none", len(attempts))
		}
		if d := time.Since(begun); d > 5*time.Second {
			t.Errorf("it took %v, want RecordTimeout at most", d)
		}
	})
}

// TestVeryLongSnoozeIsNotFinal: no time is so long that it is over.
func TestVeryLongSnoozeIsNotFinal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		retry := steady(9, 9)
		retry.Redelivered = true
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: retry}).Call(me, "k", "k")
		do(t.Context(), p, call, fails(semel.Snooze(math.MaxInt64))).wantRunNow(t, store.NotCommitted, store.Pending)
		if r := record(t, mem, call); r.Expire < 0 || r.Due <= 0 {
			t.Errorf("it is due in %v and may be purged in %v", r.Due, r.Expire)
		}
	})
}

// TestAttemptDoesNotRetainItsBatch: attempts of one Dequeue do not keep each
// other's records in memory. An attempt may run for hours.
func TestAttemptDoesNotRetainItsBatch(t *testing.T) {
	t.Parallel()
	op := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed(), Retry: &semel.Retry{}})
	engine, err := semel.New(memory.New(memory.Options{}), semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}})
	check.Require(t, err)
	t.Cleanup(func() { _ = engine.Close(context.Background()) })
	for _, key := range []string{"a", "b"} {
		check.Must(semel.Enqueue(t.Context(), engine, op.Call(me, key, "a long input of "+key), semel.EnqueueOptions{}))(t)
	}
	attempts, err := adapter.Dequeue(t.Context(), engine, op, 2)
	if err != nil || len(attempts) != 2 {
		t.Fatalf("Dequeue = %d attempts, %v, want 2", len(attempts), err)
	}
	long, input := attempts[0], weak.Make(&attempts[1].Record().Input[0])
	check.Must(attempts[1].End("v", nil))(t)
	clear(attempts)
	for range 3 {
		runtime.GC()
	}
	if input.Value() != nil {
		t.Error("an attempt keeps the input of another one, which has ended")
	}
	check.Must(long.End("v", nil))(t)
}
