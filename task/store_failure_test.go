package task_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
	"github.com/semelgo/semel/task"
)

// TestEachStoreCallFailsOnce, before or after it was applied: no task is lost,
// no task has its effect twice, and no task stays claimed.
func TestEachStoreCallFailsOnce(t *testing.T) {
	t.Parallel()
	for _, fault := range []storetest.Fault{storetest.Refuse(), storetest.Abort(), storetest.Lose()} {
		for _, dequeuer := range []bool{true, false} {
			t.Run(fmt.Sprint(fault, ", a Dequeuer: ", dequeuer), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					calls := runWithFailure(t, fault, dequeuer, 0)
					if calls < 8 {
						t.Errorf("three tasks took %d calls, want more: the test proves nothing", calls)
					}
					for k := 1; k <= calls; k++ {
						runWithFailure(t, fault, dequeuer, k)
					}
				})
			})
		}
	}
}

// runWithFailure runs three tasks over a store whose k-th call fails, and
// returns the number of calls.
func runWithFailure(t *testing.T, fault storetest.Fault, dequeuer bool, k int) int {
	t.Helper()
	r := &rig{t: t, mem: memory.New(memory.Options{}), seen: new(eventLog)}
	r.faults = storetest.NewFaultyTx(r.mem, func(c storetest.Call) storetest.Fault {
		if c.N == k {
			return fault
		}
		return storetest.Fault{}
	})
	var s store.TxStore[*memory.Tx] = r.faults
	if !dequeuer {
		s = r.faults.Plain()
	}
	inTx, ended := semel.Define("in_tx", atomicOptions()), semel.Define("ended", leasedOptions(semel.AtLeastOnce()))
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{inTx, ended}, Observer: r.seen, Lease: lease})
	check.Require(t, err, "semel.New")
	r.Engine = engine
	if r.worker, err = task.New(engine, task.Options{Slots: 3, Poll: 10 * time.Second}); err != nil {
		t.Fatalf("New: %v", err)
	}
	var effects, runs syncList[string]
	handleTx(r, inTx, func(ctx context.Context, tx *memory.Tx, in input) (int, error) {
		a, _ := semel.AttemptOf(ctx)
		effects.add(fmt.Sprintf("effect %d of attempt %d", in.N, a.Number()))
		return in.N, tx.Put(fmt.Sprintf("effect %d of attempt %d", in.N, a.Number()), nil)
	})
	handle(r, ended, func(_ context.Context, in input) (int, error) {
		runs.add(fmt.Sprint(in.N))
		return in.N, nil
	})
	tasks := []semel.Call{inTx.Call(me, "0", input{0}), inTx.Call(me, "1", input{1}), ended.Call(me, "2", input{2})}
	for _, c := range tasks {
		for { // callers retry
			if _, err := semel.Enqueue(t.Context(), engine, c, semel.EnqueueOptions{}); err == nil {
				break
			} else if !errors.Is(err, semel.ErrUnavailable) {
				t.Fatalf("Enqueue: %v", err)
			}
		}
	}
	stop := r.start()
	sleep(2 * time.Minute) // longer than the lease and the delay of a retry
	for i, c := range tasks {
		r.wantResult(c, i)
	}
	committed := 0
	for _, name := range effects.all() {
		if _, there := r.mem.Value(name); there {
			committed++
		}
	}
	check.Equal(t, committed, 2, "call %d fails by %v: effects of two tasks", k, fault)
	check.Equal(t, len(runs.all()), 1, "call %d fails by %v: the leased task ran", k, fault)
	calls := r.faults.Calls()
	stop()
	check.NoError(t, engine.Close(t.Context()), "Close")
	return calls
}
