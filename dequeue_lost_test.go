package semel_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// claiming lets f happen to each Dequeue, and loses each request that rereads one.
func claiming(f fault) func(request) fault {
	return func(r request) fault {
		switch r.Method {
		case "Dequeue":
			return f
		case "Reread":
			return fault{Before: errCut}
		default:
			return fault{}
		}
	}
}

// TestDequeueLostReply: the worker repeats a Dequeue whose reply was lost, gets the
// records that it claimed, runs them once, and does not release them while they run.
func TestDequeueLostReply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.Keyed(), 9, 1)
		queued(t, p, op, "a", "b", "c")
		p.faults.Decide(failFirst("Dequeue", fault{After: errCut}))
		attempts := dequeuedUpTo(t, p, op, 2, 2)
		p.seen.want(t, event.StoreError)
		p.faults.Decide(nil)
		work(t, p, op, returns("third")).want(t, "third", false)
		for range 5 {
			dequeued(t, p, op, 0) // looks for what is lost, and finds what runs
			pass(time.Second)
		}
		for _, a := range attempts {
			check.Equal(t, wantState(t, p.mem, a.Call(), store.InProgress).Attempt, 1, "attempt")
			answerOf(a.End("v", nil)).want(t, "v", false)
		}
	})
}

// TestDequeueFailureReleasesClaims: the next Dequeue releases records that an
// unanswered Dequeue may have claimed, long before their leases expire. It claims
// the other records.
func TestDequeueFailureReleasesClaims(t *testing.T) {
	eachInBubble(t, map[string]fault{
		"cut before it applied": {Before: errCut}, "cut after it applied": {After: errCut},
		"no answer, not applied": {Hang: true}, "no answer, applied": {Mute: true},
	}, func(t *testing.T, f fault) {
		p, op, call := queuedTask(t, semel.AtLeastOnce(), 9, 1)
		p.faults.Decide(claiming(f))
		began := time.Now()
		check.ErrorIs(t, check.Err(adapter.Dequeue(t.Context(), p, op, 1)), semel.ErrUnavailable, "Dequeue")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v, want at most RecordTimeout", took)
		}
		p.faults.Decide(nil)
		work(t, p, op, returns("v")).want(t, "v", false)
		check.Equal(t, wantState(t, p.mem, call, store.Succeeded).Tainted, false, "tainted")
	})
}

// TestLateDequeueIsReleased: the claim of an unanswered Dequeue is applied after
// everything else. No worker knows of it, and it is released all the same.
func TestLateDequeueIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 1)
		var asked store.Dequeue
		p.faults.Decide(func(r request) fault {
			if r.Method == "Dequeue" {
				asked = r.Dequeue
			}
			return fault{Before: errCut}
		})
		_, _ = adapter.Dequeue(t.Context(), p, op, 1)
		p.faults.Decide(nil)
		dequeued(t, p, op, 0)
		pass(5 * time.Second)
		call := queued(t, p, op, "k")[0]
		if claimed, err := p.mem.Dequeue(t.Context(), asked); len(claimed) != 1 || err != nil {
			t.Fatalf("the late claim: %v, %v", claimed, err)
		}
		work(t, p, op, returns("v")).want(t, "v", false)
		if r := wantState(t, p.mem, call, store.Succeeded); r.Attempt != 2 || r.Tainted {
			t.Errorf("attempt %d, tainted %v, succeeded; want the second, without taint", r.Attempt, r.Tainted)
		}
	})
}

// TestDequeueAfterAnOutage: the engine looks for claims that were lost in the
// outage, but not forever.
func TestDequeueAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.AtLeastOnce(), 9, 1)
		queued(t, p, op, "k")
		p.faults.Decide(claiming(fault{Before: errCut}))
		for range 20 {
			_, _ = adapter.Dequeue(t.Context(), p, op, 1)
		}
		p.faults.Decide(nil)
		work(t, p, op, returns("v")).want(t, "v", false)
		for range 600 {
			dequeued(t, p, op, 0)
			pass(100 * time.Millisecond)
		}
		if n := p.faults.CallsOf("Reread"); n < 20 || n > 20*10 {
			t.Errorf("it was looked for %d times after 20 were lost, want each looked for, and a few times only", n)
		}
		before := p.faults.CallsOf("Reread")
		dequeued(t, p, op, 0)
		check.Equal(t, p.faults.CallsOf("Reread"), before, "it is still looked for when nothing can come of it")
	})
}

// TestScanningQueueWithLostClaim: in a store without Dequeue, the claim is a Swap.
// It is sent once more, and then released or prevented.
func TestScanningQueueWithLostClaim(t *testing.T) {
	tests := map[string]struct {
		f     fault
		times int // that it goes wrong
	}{
		"cut before, once":  {fault{Before: errCut}, 1},
		"cut after, once":   {fault{After: errCut}, 1},
		"cut before, twice": {fault{Before: errCut}, 2},
		"cut after, twice":  {fault{After: errCut}, 2},
		"busy":              {fault{Busy: true}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			eachQueue(t, func(t *testing.T, op *semel.Operation[string], p *process, mem *memory.Store) {
				calls := queued(t, p, op, "a", "b")
				n := 0
				p.faults.Decide(func(r request) fault {
					if r.Method != "Swap" || r.To() != store.InProgress {
						return fault{}
					}
					if n++; n > tt.times {
						return fault{}
					}
					return tt.f
				})
				attempts, err := adapter.Dequeue(t.Context(), p, op, 2)
				if err != nil && !errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("Dequeue: %v", err)
				}
				for _, a := range attempts {
					answerOf(a.End("v", nil)).want(t, "v", false)
				}
				pass(time.Second)
				for range len(calls) - len(attempts) {
					work(t, p, op, returns("v")).want(t, "v", false)
				}
				for _, c := range calls {
					check.Equal(t, wantState(t, mem, c, store.Succeeded).Tainted, false, "tainted")
				}
			})
		})
	}
}

// TestScanningQueueRace: another worker claims the record that this worker has
// just found.
func TestScanningQueueRace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		op := task(semel.Keyed(), 9, 1)
		p, other := startPlain(t, newFaulty(mem), semel.Options{}), start(t, mem, semel.Options{})
		queued(t, p, op, "a", "b")
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" && r.MethodN == 1 {
				dequeuedOne(t, other, op)
			}
			return fault{}
		})
		attempts := dequeued(t, p, op, 1)
		answerOf(attempts[0].End("v", nil)).want(t, "v", false)
	})
}

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

// TestVeryLongSnoozeIsNotFinal: a very long delay does not overflow into the past.
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
