package semelhttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

type semelTx = *memory.Tx

// testEngine is an engine over a memory store that can stop responding, with a
// clock that can be moved and all observed events.
type testEngine struct {
	*semel.Engine[*memory.Tx]
	store  *faultStore
	ahead  atomic.Int64 // of the store's clock
	events events
}

func newTestEngine(t *testing.T, o semel.Options) *testEngine {
	t.Helper()
	b := new(testEngine)
	now := func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }
	b.store = newFaultStore(memory.Options{Now: now})
	if o.RecordTimeout == 0 {
		o.RecordTimeout = time.Minute // a slow machine does not end the calls of the tests
	}
	o.Observer = &b.events
	o.Survive = store.NoFailure
	engine, err := semel.New[semelTx](b.store, o)
	check.Require(t, err, "New")
	b.Engine = engine
	t.Cleanup(func() {
		b.store.down.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		check.NoError(t, engine.Close(ctx), "Close")
	})
	return b
}

// record returns the current record of a key of ann's.
func (b *testEngine) record(t *testing.T, op, key string) store.Record {
	t.Helper()
	r, _, err := admin.Get(t.Context(), b, op, semel.ScopeOf("ann"), key)
	check.Require(t, err, "Get %s", key)
	return r
}

// faultStore is a memory store that can stop responding, and whose next transaction can have
// a fault.
type faultStore struct {
	*storetest.FaultyTx[*memory.Tx]

	memory *memory.Store
	down   atomic.Bool
	calls  atomic.Int64 // Swap, Get and Atomic
	commit atomic.Pointer[storetest.Fault]
}

func newFaultStore(o memory.Options) *faultStore {
	f := &faultStore{memory: memory.New(o)}
	f.FaultyTx = storetest.NewFaultyTx(f.memory, func(c storetest.Call) storetest.Fault {
		if c.Method == "Swap" || c.Method == "Get" || c.Method == "Atomic" {
			f.calls.Add(1)
		}
		if f.down.Load() {
			return storetest.Refuse()
		}
		if c.Method == "Atomic" {
			if fault := f.commit.Swap(nil); fault != nil {
				return *fault
			}
		}
		return storetest.Fault{}
	})
	return f
}

// events is an Observer that keeps its events.
type events struct {
	mu   sync.Mutex
	seen []event.Event
}

func (e *events) Observe(_ context.Context, ev event.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, ev)
}

func (e *events) of(kind event.Kind) []event.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []event.Event
	for _, ev := range e.seen {
		if ev.Kind == kind {
			found = append(found, ev)
		}
	}
	return found
}

// byUser takes the scope from the header that replaces authentication in these
// tests.
func byUser(r *http.Request) (semel.Scope, error) {
	user := r.Header.Get("X-User")
	if user == "" {
		return semel.Scope{}, errors.New("no user")
	}
	return semel.ScopeOf(user), nil
}

func options() semelhttp.Options {
	return semelhttp.Options{ScopeFunc: byUser, ErrorFunc: func(*http.Request, error) {}}
}

// serve serves h, for POST and PATCH at /ops, over a real connection.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/ops", h)
	mux.Handle("/ops/{id}", h)
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// atomicServer serves h behind Atomic with operation op.
func (b *testEngine) atomicServer(t *testing.T, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
	t.Helper()
	protect, err := semelhttp.Atomic(b.Engine, op, o)
	check.Require(t, err, "Atomic")
	return serve(t, protect(h))
}

// leasedServer serves h behind Middleware with operation op.
func (b *testEngine) leasedServer(t *testing.T, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
	t.Helper()
	protect, err := semelhttp.Middleware(b.Engine, op, o)
	check.Require(t, err, "Middleware")
	return serve(t, protect(h))
}

func define(name string, o semel.OperationOptions[semelhttp.Request]) *semel.Operation[semelhttp.Request] {
	return semel.Define(name, o)
}

// purge removes the records whose retention is over.
func (b *testEngine) purge(t *testing.T) {
	t.Helper()
	if _, err := admin.Purge(t.Context(), b, 100); err != nil {
		t.Fatalf("Purge: %v", err)
	}
}

// inTransaction runs fn within semel.InTx, with its context.
func inTransaction(r *http.Request, b *testEngine, fn func(*http.Request) error) error {
	_, err := semel.InTx(r.Context(), b.Engine, func(ctx context.Context, _ semelTx) (struct{}, error) {
		return struct{}{}, fn(r.WithContext(ctx))
	})
	return err
}

type plain = semel.OperationOptions[semelhttp.Request]

// barrier holds handlers until it is opened.
type barrier struct{ entered, open chan struct{} }

func newBarrier() *barrier { return &barrier{make(chan struct{}, 100), make(chan struct{})} }

func (b *barrier) wait() {
	b.entered <- struct{}{}
	<-b.open
}

// held waits until a handler is held. The test fails if its request is answered before: on a busy machine
// the store may not answer a claim in time.
func (b *barrier) held(t *testing.T, early <-chan answer) {
	t.Helper()
	select {
	case <-b.entered:
	case got := <-early:
		close(b.open) // the server does not close before its handlers have ended
		t.Fatalf("a request that was to be held has the answer %d %s", got.status, got.body)
	}
}

// created responds 201 with the number of the run.
func created(n *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/ops/7")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "run %d", n.Add(1))
	}
}

// serveFunc serves a handler behind an entry point.
type serveFunc = func(*testEngine, *semel.Operation[semelhttp.Request], semelhttp.Options, http.HandlerFunc) string

// both runs test behind Atomic and behind Middleware.
func both(t *testing.T, test func(t *testing.T, serve serveFunc)) {
	t.Helper()
	t.Run("atomic", func(t *testing.T) {
		t.Parallel()
		test(t, func(b *testEngine, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
			return b.atomicServer(t, op, o, h)
		})
	})
	t.Run("middleware", func(t *testing.T) {
		t.Parallel()
		test(t, func(b *testEngine, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
			return b.leasedServer(t, op, o, h)
		})
	})
}
