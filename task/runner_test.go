package task_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/plainstore"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// Workers run tasks over a store without transactions, whether or not it can
// dequeue. A failed run is retried, and a periodic schedule enqueues its ticks.
func TestWorkersWithoutTransactions(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]store.Store{"a store that dequeues": plainstore.New(plainstore.Options{}), "a bare store": plainstore.New(plainstore.Options{}).Bare()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := leasedOptions(semel.Keyed())
			o.Retry.Delay = after(0)
			op := semel.Define("op", o)
			e, err := semel.NewRunner(s, semel.Options{Survive: store.NoFailure, Operations: []semel.Declared{op}})
			check.Require(t, err)
			var workers sync.WaitGroup
			ctx, stop := context.WithCancel(t.Context())
			t.Cleanup(func() {
				stop()
				workers.Wait()
				check.NoError(t, e.Close(context.WithoutCancel(t.Context())), "Close")
			})
			for range 2 {
				w := check.Must(task.New(e, task.Options{Slots: 3, Poll: time.Millisecond}))(t)
				check.Require(t, task.Handle(w, op, func(ctx context.Context, in input) (int, error) {
					if a, _ := semel.AttemptOf(ctx); a.Number() == 1 {
						return 0, semel.NotCommitted(errors.New("the first run fails"))
					}
					return 2 * in.N, nil
				}, task.HandlerOptions{}))
				workers.Go(func() {
					check.NoError(t, w.Run(ctx), "Run")
				})
			}
			p, err := task.NewPeriodic(e, task.PeriodicOptions[input]{
				Name: "daily", Schedule: task.Every(24 * time.Hour), Operation: op, Scope: me,
				Input: func(time.Time) input { return input{N: 7} }, CatchUp: time.Minute, Skew: time.Minute,
			})
			check.Require(t, err)
			tick := time.Now()
			if added, err := p.Tick(ctx, tick); !added || err != nil {
				t.Fatalf("Tick = %v, %v, want it added", added, err)
			}
			call := op.Call(me, "k", input{N: 21})
			if added, err := semel.Enqueue(ctx, e, call, semel.EnqueueOptions{}); !added || err != nil {
				t.Fatalf("Enqueue = %v, %v, want it added", added, err)
			}
			for _, c := range []semel.Call{call, p.Call(tick)} {
				realtest.Poll(t, "the success of the second run", func() bool {
					r, _, err := admin.Get(ctx, e, "op", me, c.Key())
					return err == nil && r.State == store.Succeeded && r.Attempt == 2
				})
			}
			v, replayed, err := semel.Do(ctx, e, call, func(context.Context) (int, error) { return 0, nil })
			if v != 42 || !replayed || err != nil {
				t.Errorf("Do = %d, %v, %v, want the result of the task", v, replayed, err)
			}
		})
	}
}

// A function in a transaction is registered with the engine of its worker.
func TestHandleTxNeedsTheEngineOfTheWorker(t *testing.T) {
	t.Parallel()
	op := semel.Define("op", atomicOptions())
	mem := memory.New(memory.Options{})
	r, other := newRig(t, mem, task.Options{}, op), newRig(t, mem, task.Options{}, op)
	err := task.HandleTx(r.worker, other.Engine, op, func(context.Context, *memory.Tx, input) (int, error) { return 0, nil }, task.HandlerOptions{})
	if f, ok := errtype.Find[*semel.FieldError](err); !ok || f.Field != "engine" {
		t.Errorf("HandleTx with another engine = %v, want an error about engine", err)
	}
}
