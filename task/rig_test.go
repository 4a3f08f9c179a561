package task_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

const lease = 30 * time.Second

var (
	me      = semel.ScopeOf("me")
	errBoom = errors.New("boom")
)

// input is what the tasks of the tests are enqueued with.
type input struct{ N int }

// atomic are the options of an operation whose effect is in the record's database.
func atomicOptions() semel.OperationOptions[input] {
	return semel.OperationOptions[input]{Policy: semel.Atomic(), Retry: &semel.Retry{Delay: after(time.Second)}}
}

// leasedOptions are those of one whose effect is elsewhere.
func leasedOptions(p semel.Policy) semel.OperationOptions[input] {
	return semel.OperationOptions[input]{Policy: p, Retry: &semel.Retry{Delay: after(time.Second)}}
}

func after(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// rig is a store in memory, an engine over it and a worker.
type rig struct {
	*semel.Engine[*memory.Tx]

	t      *testing.T
	mem    *memory.Store
	worker *task.Worker[*memory.Tx]
	seen   *eventLog
}

// newRig returns one process that has ops. Its engine is closed with the test.
func newRig(t *testing.T, mem *memory.Store, o task.Options, ops ...semel.Declared) *rig {
	t.Helper()
	r := &rig{t: t, mem: mem, seen: new(eventLog)}
	r.Engine = newEngine(t, mem, r.seen, ops...)
	worker, err := task.New(r.Engine, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	r.worker = worker
	return r
}

func newEngine[Tx any](t *testing.T, s store.TxStore[Tx], o semel.Observer, ops ...semel.Declared) *semel.Engine[Tx] {
	t.Helper()
	engine, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: ops, Observer: o})
	if err != nil {
		t.Fatalf("semel.New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := engine.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return engine
}

// handle registers fn, which must be possible.
func handle[T any](r *rig, op *semel.Operation[input], fn func(ctx context.Context, in input) (T, error), o ...task.HandlerOptions) {
	r.t.Helper()
	if err := task.Handle(r.worker, op, fn, append(o, task.HandlerOptions{})[0]); err != nil {
		r.t.Fatalf("Handle: %v", err)
	}
}

func handleTx[T any](r *rig, op *semel.Operation[input], fn func(ctx context.Context, tx *memory.Tx, in input) (T, error), o ...task.HandlerOptions) {
	r.t.Helper()
	if err := task.HandleTx(r.worker, op, fn, append(o, task.HandlerOptions{})[0]); err != nil {
		r.t.Fatalf("HandleTx: %v", err)
	}
}

// enqueue enqueues a task, which must be new.
func (r *rig) enqueue(c semel.Call, o ...semel.EnqueueOptions) {
	r.t.Helper()
	added, err := semel.Enqueue(r.t.Context(), r, c, append(o, semel.EnqueueOptions{})[0])
	if !added || err != nil {
		r.t.Fatalf("Enqueue = %v, %v, want it added", added, err)
	}
}

// enqueueOtherVersion is a call that another version of the program has enqueued, whose
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

// start runs the worker. What it returns stops it, and waits for it.
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

// record returns what stands for c.
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

// wantState fails the test unless c stands so, and returns what stands.
func (r *rig) wantState(c semel.Call, want store.State) store.Record {
	r.t.Helper()
	got := r.record(c)
	if got.State != want {
		r.t.Errorf("the record stands as %v, want %v", got.State, want)
	}
	return got
}

// progress is what the record of c says of its attempts.
func (r *rig) progress(c semel.Call) semel.Progress {
	r.t.Helper()
	p, ok := semel.ProgressOf(r.record(c))
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

// sleep lets d go by; in a bubble that takes no time.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// eventLog remembers events.
type eventLog struct {
	mu     sync.Mutex
	events []semel.Event
}

func (s *eventLog) Observe(_ context.Context, e semel.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// of returns the events of a kind.
func (s *eventLog) of(kind semel.EventKind) []semel.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of []semel.Event
	for _, e := range s.events {
		if e.Kind == kind {
			of = append(of, e)
		}
	}
	return of
}

// syncList is a list that goroutines write to.
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
