package task_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
	"github.com/semelgo/semel/task"
)

// runTogether runs n tasks that end at the same moment.
func runTogether(t *testing.T, n int) (*rig, []semel.Call) {
	t.Helper()
	op := semel.Define("op", leasedOptions(semel.Hold()))
	r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: n}, op)
	end := time.Now().Add(time.Minute)
	handle(r, op, func(_ context.Context, in input) (int, error) {
		<-time.After(time.Until(end))
		return in.N, nil
	})
	calls := make([]semel.Call, n)
	for i := range calls {
		calls[i] = op.Call(me, fmt.Sprint(i), input{i})
		r.enqueue(calls[i])
	}
	return r, calls
}

// wantResult fails the test unless c succeeded with v.
func (r *rig) wantResult(c semel.Call, v int) {
	r.t.Helper()
	out := adapter.Outcome{Record: r.wantState(c, store.Succeeded)}
	var got int
	if err := out.Decode(&got); got != v || err != nil {
		r.t.Errorf("the result is %d, %v; want %d", got, err, v)
	}
}

// TestCompletionsAreBatched: attempts that succeed while a Swap is running are
// completed by the next Swap, each with its own result.
func TestCompletionsAreBatched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 50
		r, calls := runTogether(t, n)
		slow := make(chan struct{})
		ends := r.swaps(store.InProgress, store.Succeeded, func(int) storetest.Fault { return storetest.Fault{Gate: slow} })
		defer r.start()()
		sleep(62 * time.Second)
		if got := ends.all(); len(got) != 1 {
			t.Errorf("%d Swaps ended tasks, want one in flight", len(got))
		}
		close(slow)
		sleep(time.Second)
		check.Equal(t, len(ends.all()), 2, "Swaps ended %d tasks", n)
		for i, c := range calls {
			r.wantResult(c, i)
		}
	})
}

// TestBusyRecordDoesNotDelayTheBatch: an open transaction holds one record
// until all others have been completed.
func TestBusyRecordDoesNotDelayTheBatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, calls := runTogether(t, 20)
		defer r.start()()
		sleep(30 * time.Second)
		_, err := r.mem.Atomic(t.Context(), store.ID{}, false, func(ctx context.Context, tx *memory.Tx, _ store.SwapResult) (*store.Change, error) {
			current := r.record(calls[0])
			if _, err := r.mem.SwapTx(ctx, tx, []store.Change{{If: current.Token, To: current}}); err != nil {
				return nil, err
			}
			sleep(32 * time.Second)
			for i, c := range calls[1:] {
				r.wantResult(c, i+1)
			}
			r.wantState(calls[0], store.InProgress)
			return nil, errBoom // roll the transaction back
		})
		check.Fails(t, err, "Atomic")
		sleep(30 * time.Second)
		r.wantResult(calls[0], 0)
	})
}

// TestLostReplyCompletesEachTaskOnce: the Swap of a batch gets no answer, and
// each attempt is then completed alone.
func TestLostReplyCompletesEachTaskOnce(t *testing.T) {
	t.Parallel()
	for _, f := range []storetest.Fault{storetest.Refuse(), storetest.Lose()} {
		t.Run(f.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r, calls := runTogether(t, 20)
				r.swaps(store.InProgress, store.Succeeded, func(n int) storetest.Fault {
					if n > 2 {
						return storetest.Fault{}
					}
					return f
				})
				defer r.start()()
				sleep(2 * time.Minute)
				for i, c := range calls {
					r.wantResult(c, i)
				}
				check.Equal(t, len(r.seen.of(event.Succeeded)), len(calls), "successes were seen")
			})
		})
	}
}

// TestSlotIsHeldUntilCompletionIsConfirmed: a worker does not claim more than
// it can complete.
func TestSlotIsHeldUntilCompletionIsConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.Hold()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{Slots: 2}, op)
		var ran syncList[int]
		handle(r, op, func(_ context.Context, in input) (int, error) {
			ran.add(in.N)
			return 0, nil
		})
		for i := range 4 {
			r.enqueue(op.Call(me, fmt.Sprint(i), input{i}))
		}
		answer := make(chan struct{})
		r.swaps(store.InProgress, store.Succeeded, func(int) storetest.Fault { return storetest.Fault{Gate: answer} })
		defer r.start()()
		sleep(2 * time.Second)
		if got := ran.all(); len(got) != 2 {
			t.Errorf("%v ran while no completion was confirmed, want two", got)
		}
		close(answer)
		sleep(time.Second)
		if got := ran.all(); len(got) != 4 {
			t.Errorf("%v ran, want all", got)
		}
	})
}
