package semel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// startQueue starts a process over mem, as a store.Dequeuer or not.
func startQueue(t *testing.T, f *faulty, o semel.Options, dequeuer bool) *process {
	t.Helper()
	if dequeuer {
		return startOn(t, f, o)
	}
	return startPlain(t, f, o)
}

// eachQueue runs test in a bubble over a store that hands out what waits, and over
// one in which it is looked for.
func eachQueue(t *testing.T, test func(t *testing.T, op *semel.Operation[string], p *process, mem *memory.Store)) {
	t.Helper()
	eachInBubble(t, map[string]bool{"Dequeuer": true, "no Dequeuer": false}, func(t *testing.T, hands bool) {
		mem := memory.New(memory.Options{})
		op := task(semel.Keyed(), 9, 1)
		test(t, op, startQueue(t, newFaulty(mem), semel.Options{Operations: []semel.Declared{op}}, hands), mem)
	})
}

// keys are those of attempts, in their order.
func keys(attempts []*semel.Attempt) []string {
	var got []string
	for _, a := range attempts {
		got = append(got, a.Call().Key())
	}
	return got
}

// TestDequeueOrder: the highest priority goes first, and of these what has been due
// for longest; what is not due stays, and so does what is of another operation.
func TestDequeueOrder(t *testing.T) {
	eachQueue(t, func(t *testing.T, op *semel.Operation[string], p *process, mem *memory.Store) {
		other := plain("other", semel.OperationOptions[string]{Retry: steady(1, 1)})
		queued(t, p, other, "other")
		for _, q := range []struct {
			key string
			o   semel.EnqueueOptions
		}{
			{"later", semel.EnqueueOptions{Delay: 2 * time.Second}},
			{"low", semel.EnqueueOptions{Priority: -1}},
			{"sooner", semel.EnqueueOptions{At: time.Now().Add(time.Second)}},
			{"high", semel.EnqueueOptions{Priority: 4, Delay: 3 * time.Second}},
			{"never", semel.EnqueueOptions{Priority: 4, Delay: time.Hour}},
			{"past", semel.EnqueueOptions{At: time.Now().Add(-time.Hour)}},
		} {
			check.Result(semel.Enqueue(t.Context(), p, op.Call(me, q.key, "in"), q.o))(t, true, "Enqueue")
		}
		pass(time.Minute)
		var got []string
		for _, limit := range []int{2, 1, 100} {
			got = append(got, keys(dequeuedUpTo(t, p, op, limit, min(limit, 2)))...)
		}
		if want := []string{"high", "past", "sooner", "later", "low"}; !slices.Equal(got, want) {
			t.Errorf("claimed %v, want %v", got, want)
		}
		wantState(t, mem, op.Call(me, "never", "in"), store.Pending)
		wantState(t, mem, other.Call(me, "other", "other"), store.Pending)
	})
}

// TestDequeuedAttempt has all that one of Begin has: what was claimed, its token,
// its input, a context that its function is run with.
func TestDequeuedAttempt(t *testing.T) {
	eachQueue(t, func(t *testing.T, op *semel.Operation[string], p *process, mem *memory.Store) {
		call := op.Call(me, "k", "the input")
		_, _ = semel.Enqueue(t.Context(), p, call, semel.EnqueueOptions{Priority: 3})
		ctx, end := context.WithCancel(t.Context())
		attempts, err := adapter.Dequeue(ctx, p, op, 1)
		if err != nil || len(attempts) != 1 {
			t.Fatalf("Dequeue = %v, %v", attempts, err)
		}
		a := attempts[0]
		r := wantState(t, mem, call, store.InProgress)
		if a.Token() != r.Token || a.Number() != 1 || a.Record().Priority != 3 || a.Call().ID() != call.ID() ||
			!slices.Equal(a.Call().Scope().Parts(), []string{"me"}) || r.Due != lease || r.Expire != 0 {
			t.Errorf("the attempt has %+v of %+v, the current record is %+v", a.Record(), a.Call(), r)
		}
		check.Result(op.Input(a))(t, "the input", "Input")
		if own, ok := semel.AttemptOf(a.Context()); !ok || own != a {
			t.Error("its context does not know it")
		}
		check.Must(semel.ChildKey(a.Context(), "charge"))(t)
		if out, err := a.Prepare(); out != nil || err != nil || a.Context().Err() != nil {
			t.Errorf("Prepare = %v, %v; its context %v", out, err, a.Context().Err())
		}
		end()
		if context.Cause(a.Context()) != context.Canceled { //nolint:errorlint // this very one
			t.Errorf("its context ended with %v, want the caller's", context.Cause(a.Context()))
		}
		answerOf(a.End("v", nil)).want(t, "v", false)
		do(t.Context(), p, call, never(t)).want(t, "v", true)
	})
}

// TestInputOfAnotherOperation: of another operation, or none that can be read, or that of a
// direct call.
func TestInputOfAnotherOperation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, op := ownedTask(t, semel.Keyed(), 9, 1)
		queued(t, p, op, "k")
		numbers := semel.Define("op", semel.OperationOptions[int]{Policy: semel.Keyed(), Retry: steady(9, 1)})
		a := dequeued(t, p, numbers, 1)[0]
		wantField(t, check.Err(op.Input(a)), "Attempt")
		if _, err := numbers.Input(a); err == nil {
			t.Error("a text was read as a number")
		}
		direct := begin(t, p, op.Call(me, "direct", "asked for"))
		defer direct.Abandon()
		check.Result(op.Input(direct))(t, "asked for", "Input of a direct call")
	})
}

// TestDequeueErrors what is wrong, and asks the store nothing.
func TestDequeueErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := plain("op", semel.OperationOptions[string]{Retry: steady(9, 1)})
		p, _ := owned(t, op)
		queued(t, p, op, "k")
		p.faults.Decide(nil)
		for _, limit := range []int{0, -1} {
			dequeuedUpTo(t, p, op, limit, 0)
		}
		wantField(t, check.Err(adapter.Dequeue(t.Context(), p, plain("", semel.OperationOptions[string]{}), 1)), "Name")
		wantField(t, check.Err(adapter.Dequeue(t.Context(), p, plain("op", semel.OperationOptions[string]{Retention: 1}), 1)), "Retention")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		check.ErrorIs(t, check.Err(adapter.Dequeue(ctx, p, op, 1)), context.Canceled, "Dequeue with a canceled context")
		check.NoError(t, p.Close(t.Context()), "Close")
		check.ErrorIs(t, check.Err(adapter.Dequeue(t.Context(), p, op, 1)), semel.ErrClosed, "Dequeue after Close")
		check.Equal(t, p.faults.Calls(), 0, "the store was called")
	})
}

// TestDequeueIsBoundedByTheBatch of the store.
func TestDequeueIsBoundedByTheBatch(t *testing.T) {
	eachInBubble(t, map[string]bool{"Dequeuer": true, "no Dequeuer": false}, func(t *testing.T, hands bool) {
		op := plain("op", semel.OperationOptions[string]{Retry: steady(9, 1)})
		p, mem := owned(t, op)
		queued(t, p, op, "a", "b", "c")
		small := startQueue(t, limitedOver(mem, func(c *store.Capabilities) { c.MaxBatch = 2 }), semel.Options{}, hands)
		attempts, err := adapter.Dequeue(t.Context(), small, op, 100)
		check.Result(len(attempts), err)(t, 2, "Dequeue")
		for _, a := range attempts {
			a.Abandon()
		}
	})
}

// TestDequeueWithCanceledContext: the engine was closed, or the worker's context
// ended, during the call. The claims are released at once, and do not count as
// crashes.
func TestDequeueWithCanceledContext(t *testing.T) {
	eachInBubble(t, map[string]bool{"closed": true, "gone": false}, func(t *testing.T, closes bool) {
		op := plain("op", semel.OperationOptions[string]{Retry: steady(9, 1)})
		p, mem := owned(t, op)
		calls := queued(t, p, op, "a", "b")
		gate := make(chan struct{})
		p.faults.Decide(failOn("Dequeue", fault{Gate: gate}))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		claimed := blocked(func() answer {
			attempts, err := adapter.Dequeue(ctx, p, op, 2)
			return answer{v: fmt.Sprint(keys(attempts)), err: err}
		})
		closed := make(chan error, 1)
		if closes {
			go func() { closed <- p.Close(t.Context()) }()
			synctest.Wait()
		} else {
			stop()
		}
		close(gate)
		if a := <-claimed; a.v != "[]" || !closes && !errors.Is(a.err, context.Canceled) {
			t.Errorf("Dequeue = %s, %v, want none", a.v, a.err)
		}
		if closes {
			check.NoError(t, <-closed, "Close")
		}
		for _, c := range calls {
			wantDue(t, wantState(t, mem, c, store.Pending), 0)
			wantTries(t, progress(t, mem, c), admin.TryInterrupted)
		}
		next := start(t, mem, semel.Options{})
		for range calls {
			work(t, next, op, returns("v")).want(t, "v", false)
		}
	})
}

// TestDequeueConcurrently: of what waits each is run once, however many workers ask.
func TestDequeueConcurrently(t *testing.T) {
	eachQueue(t, func(t *testing.T, op *semel.Operation[string], p *process, _ *memory.Store) {
		const n = 60
		for i := range n {
			queued(t, p, op, fmt.Sprint(i))
		}
		var workers sync.WaitGroup
		var seen sync.Map // of keys
		for range 8 {
			workers.Go(func() {
				// Without a Dequeuer, workers that lose a race may return no calls.
				for idle := 0; idle < n; idle++ {
					attempts, _ := adapter.Dequeue(t.Context(), p, op, 3)
					for _, a := range attempts {
						if _, twice := seen.LoadOrStore(a.Call().Key(), true); twice {
							t.Errorf("%s is run twice", a.Call().Key())
						}
						_, _ = a.End("v", nil)
						idle = 0
					}
				}
			})
		}
		workers.Wait()
		for i := range n {
			if _, ok := seen.Load(fmt.Sprint(i)); !ok {
				t.Errorf("%d was not run", i)
			}
		}
	})
}
