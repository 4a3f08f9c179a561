package task_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

// TestGoroutinesAreReused: a function does not start on a new, small stack.
func TestGoroutinesAreReused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		r := newRig(t, memory.New(memory.Options{}), task.Options{}, op)
		var on syncList[string]
		handle(r, op, func(context.Context, input) (int, error) {
			stack := make([]byte, 64)
			on.add(strings.Fields(string(stack[:runtime.Stack(stack, false)]))[1]) // goroutine N [running]:
			return 0, nil
		})
		defer r.start()()
		for n := range 10 {
			r.enqueue(op.Call(me, fmt.Sprint("k", n), input{n}))
			sleep(time.Minute)
		}
		all := on.all()
		some := slices.Compact(slices.Sorted(slices.Values(all)))
		if len(all) != 10 || len(some) > 2 {
			t.Errorf("the functions ran on goroutines %v, want ten that share one or two", all)
		}
	})
}

// firstCompletion records how many functions had started when the first success
// was stored.
type firstCompletion struct {
	begun, at atomic.Int64
}

func (f *firstCompletion) Observe(_ context.Context, e event.Event) {
	if e.Kind == event.Succeeded {
		f.at.CompareAndSwap(0, f.begun.Load())
	}
}

// TestCompletionDoesNotWaitForQueuedTasks: a success is stored while other
// tasks of the same claim are still queued in the worker.
func TestCompletionDoesNotWaitForQueuedTasks(t *testing.T) {
	t.Parallel()
	const n = 200
	op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
	f := new(firstCompletion)
	engine := newEngine(t, memory.New(memory.Options{}), f, op)
	worker, err := task.New(engine, task.Options{Slots: n})
	check.Require(t, err)
	done := make(chan struct{}, n)
	err = task.Handle(worker, op, func(context.Context, input) (int, error) {
		f.begun.Add(1)
		sha256.Sum256(make([]byte, 1<<20)) // some work
		done <- struct{}{}
		return 0, nil
	}, task.HandlerOptions{})
	check.Require(t, err)
	for i := range n {
		check.Must(semel.Enqueue(t.Context(), engine, op.Call(me, fmt.Sprint(i), input{i}), semel.EnqueueOptions{}))(t)
	}
	stop := (&rig{t: t, worker: worker}).start()
	for range n {
		<-done
	}
	stop()
	if at := f.at.Load(); at == 0 || at == n {
		t.Errorf("the first success was recorded when %d of %d functions had started", at, n)
	}
}

// TestSubmitFirstRunsFirst, whether or not other functions have started before.
func TestSubmitFirstRunsFirst(t *testing.T) {
	t.Parallel()
	want := []string{"soon", "first", "sooner", "second", "third"}
	if ran := task.QueueOrder(); !slices.Equal(ran, want) {
		t.Errorf("hands run %v, want %v", ran, want)
	}
}

type panickingObserver struct{}

func (panickingObserver) Observe(_ context.Context, e event.Event) {
	if e.Kind == event.Succeeded {
		panic("observer")
	}
}

func TestEngineClosesAfterAnObserverPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		op := semel.Define("op", leasedOptions(semel.AtLeastOnce()))
		engine := newEngine(t, memory.New(memory.Options{}), panickingObserver{}, op)
		worker := check.Must(task.New(engine, task.Options{}))(t)
		check.Require(t, task.Handle(worker, op, func(context.Context, input) (int, error) { return 0, nil }, task.HandlerOptions{}))
		check.Must(semel.Enqueue(t.Context(), engine, op.Call(me, "k", input{}), semel.EnqueueOptions{}))(t)
		stop := (&rig{t: t, worker: worker}).start()
		sleep(time.Minute)
		stop()
		short, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		check.NoError(t, engine.Close(short), "Close")
	})
}
