package task_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
	"github.com/semelgo/semel/task"
)

const lease = 30 * time.Second

var (
	me      = semel.ScopeOf("me")
	errBoom = errors.New("boom")
)

// input is the input of the tests' tasks.
type input struct{ N int }

// atomicOptions are the options of an operation with its effect in the record's
// database.
func atomicOptions() semel.OperationOptions[input] {
	return semel.OperationOptions[input]{Policy: semel.Atomic(), Retry: &semel.Retry{Delay: after(time.Second)}}
}

// leasedOptions are the options of an operation with its effect elsewhere.
func leasedOptions(p semel.Policy) semel.OperationOptions[input] {
	return semel.OperationOptions[input]{Policy: p, Retry: &semel.Retry{Delay: after(time.Second)}}
}

func after(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// rig is a store in memory, an engine and a worker.
type rig struct {
	*semel.Engine[*memory.Tx]

	t      *testing.T
	mem    *memory.Store
	faults *storetest.FaultyTx[*memory.Tx] // the engine's connection to mem
	worker *task.Worker
	seen   *eventLog
}

// newRig returns a process with the operations ops. The test's cleanup closes
// its engine.
func newRig(t *testing.T, mem *memory.Store, o task.Options, ops ...semel.Declared) *rig {
	t.Helper()
	r := &rig{t: t, mem: mem, faults: storetest.NewFaultyTx(mem, nil), seen: new(eventLog)}
	r.Engine = newEngine(t, r.faults, r.seen, ops...)
	worker, err := task.New(r.Engine, o)
	check.Require(t, err, "New")
	r.worker = worker
	return r
}

// setDown makes all calls of the store fail, or work again.
func (r *rig) setDown(down bool) {
	r.faults.Decide(func(storetest.Call) storetest.Fault {
		if down {
			return storetest.Refuse()
		}
		return storetest.Fault{}
	})
}

// swaps returns a list of the Swaps from now on whose first change leads from one
// state to the other. decide returns the fault of the n-th of them, from 1.
func (r *rig) swaps(from, to store.State, decide func(n int) storetest.Fault) *syncList[[]store.Change] {
	list := new(syncList[[]store.Change])
	r.faults.Decide(func(c storetest.Call) storetest.Fault {
		if c.Method != "Swap" || c.Changes[0].If.State != from || c.To() != to {
			return storetest.Fault{}
		}
		list.add(slices.Clone(c.Changes))
		if decide == nil {
			return storetest.Fault{}
		}
		return decide(len(list.all()))
	})
	return list
}

func newEngine[Tx any](t *testing.T, s store.TxStore[Tx], o event.Observer, ops ...semel.Declared) *semel.Engine[Tx] {
	t.Helper()
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: ops, Observer: o})
	check.Require(t, err, "semel.New")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	return engine
}

// handle registers fn, and fails the test on an error.
func handle[T any](r *rig, op *semel.Operation[input], fn func(ctx context.Context, in input) (T, error), o ...task.HandlerOptions) {
	r.t.Helper()
	if err := task.Handle(r.worker, op, fn, append(o, task.HandlerOptions{})[0]); err != nil {
		r.t.Fatalf("Handle: %v", err)
	}
}

func handleTx[T any](r *rig, op *semel.Operation[input], fn func(ctx context.Context, tx *memory.Tx, in input) (T, error), o ...task.HandlerOptions) {
	r.t.Helper()
	if err := task.HandleTx(r.worker, r.Engine, op, fn, append(o, task.HandlerOptions{})[0]); err != nil {
		r.t.Fatalf("HandleTx: %v", err)
	}
}

// enqueue enqueues a new task.
func (r *rig) enqueue(c semel.Call, o ...semel.EnqueueOptions) {
	r.t.Helper()
	added, err := semel.Enqueue(r.t.Context(), r, c, append(o, semel.EnqueueOptions{})[0])
	if !added || err != nil {
		r.t.Fatalf("Enqueue = %v, %v, want it added", added, err)
	}
}

// enqueueOtherVersion enqueues a call as another version of the program, whose
// operation has inputs of type T.
func enqueueOtherVersion[T any](r *rig, key string, in T) semel.Call {
	r.t.Helper()
	older, err := semel.New(r.mem, semel.Options{Survive: store.NoFailure})
	if err != nil {
		r.t.Fatal(err)
	}
	call := semel.Define("op", semel.OperationOptions[T]{Retry: &semel.Retry{}}).Call(me, key, in)
	if _, err := semel.Enqueue(r.t.Context(), older, call, semel.EnqueueOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return call
}

// start runs the worker. The returned function stops it and waits for it.
func (r *rig) start() (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- r.worker.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("Run: %v", err)
		}
	})
}

// record returns the current record of c.
func (r *rig) record(c semel.Call) store.Record {
	r.t.Helper()
	answers, err := r.mem.Get(r.t.Context(), []store.ID{c.ID()})
	if err != nil {
		r.t.Fatalf("Get: %v", err)
	}
	if answers[0].Record == nil {
		return store.Record{}
	}
	return *answers[0].Record
}

// wantState fails the test unless the record of c is in the state, and returns
// the record.
func (r *rig) wantState(c semel.Call, want store.State) store.Record {
	r.t.Helper()
	got := r.record(c)
	if got.State != want {
		r.t.Errorf("the record is %v, want %v", got.State, want)
	}
	return got
}

// progress returns the progress in the record of c.
func (r *rig) progress(c semel.Call) admin.Progress {
	r.t.Helper()
	p, ok := admin.ProgressOf(r.record(c))
	if !ok {
		r.t.Errorf("the record %v has no progress", r.record(c).State)
	}
	return p
}

// bubble runs test in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// sleep waits for d. In a bubble that takes no real time.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// eventLog records events.
type eventLog struct {
	mu     sync.Mutex
	events []event.Event
}

func (s *eventLog) Observe(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// of returns the events of a kind.
func (s *eventLog) of(kind event.Kind) []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []event.Event
	for _, e := range s.events {
		if e.Kind == kind {
			of = append(of, e)
		}
	}
	return of
}

// syncList is a list for several goroutines.
type syncList[T any] struct {
	mu    sync.Mutex
	items []T
}

func (l *syncList[T]) add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, v)
}

func (l *syncList[T]) all() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]T(nil), l.items...)
}
