package semelhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
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
	b.store = &faultStore{Store: memory.New(memory.Options{Now: now})}
	if o.RecordTimeout == 0 {
		o.RecordTimeout = time.Second
	}
	o.Observer = &b.events
	o.Survive = store.NoFailure
	engine, err := semel.New[semelTx](b.store, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	b.Engine = engine
	t.Cleanup(func() {
		b.store.down.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := engine.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// record returns the current record of a key of ann's.
func (b *testEngine) record(t *testing.T, op, key string) store.Record {
	t.Helper()
	r, _, err := b.Get(t.Context(), op, semel.ScopeOf("ann"), key)
	if err != nil {
		t.Fatalf("Get %s: %v", key, err)
	}
	return r
}

var errDown = errors.New("the store is down")

// faultStore is a memory store that can stop responding, and whose next transaction
// can end without a reply.
type faultStore struct {
	*memory.Store
	down   atomic.Bool
	calls  atomic.Int64
	commit atomic.Pointer[func(store.Verdict, error) (store.Verdict, error)]
}

func (f *faultStore) ask() error {
	f.calls.Add(1)
	if f.down.Load() {
		return errDown
	}
	return nil
}

func (f *faultStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	if err := f.ask(); err != nil {
		return nil, err
	}
	return f.Store.Swap(ctx, changes)
}

func (f *faultStore) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := f.ask(); err != nil {
		return nil, err
	}
	return f.Store.Get(ctx, ids)
}

func (f *faultStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	if err := f.ask(); err != nil {
		return store.NotCommitted, err
	}
	verdict, err := f.Store.Atomic(ctx, id, hold, run)
	if end := f.commit.Swap(nil); end != nil {
		return (*end)(verdict, err)
	}
	return verdict, err
}

// events is an Observer that keeps its events.
type events struct {
	mu   sync.Mutex
	seen []semel.Event
}

func (e *events) Observe(_ context.Context, ev semel.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, ev)
}

func (e *events) of(kind semel.EventKind) []semel.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []semel.Event
	for _, ev := range e.seen {
		if ev.Kind == kind {
			found = append(found, ev)
		}
	}
	return found
}

// byUser takes the scope from the header that stands for authentication in these
// tests.
func byUser(r *http.Request) (semel.Scope, error) {
	user := r.Header.Get("X-User")
	if user == "" {
		return semel.Scope{}, errors.New("nobody")
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
	if err != nil {
		t.Fatalf("Atomic: %v", err)
	}
	return serve(t, protect(h))
}

// leasedServer serves h behind Middleware with operation op.
func (b *testEngine) leasedServer(t *testing.T, op *semel.Operation[semelhttp.Request], o semelhttp.Options, h http.HandlerFunc) string {
	t.Helper()
	protect, err := semelhttp.Middleware(b.Engine, op, o)
	if err != nil {
		t.Fatalf("Middleware: %v", err)
	}
	return serve(t, protect(h))
}

func define(name string, o semel.OperationOptions[semelhttp.Request]) *semel.Operation[semelhttp.Request] {
	return semel.Define(name, o)
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// testRequest is a request; its zero fields are ann's POST /ops of {"n":1} with key
// k1.
type testRequest struct {
	method, path, user, body, mediaType string
	key                                 []string // header lines; nil: k1
	header                              http.Header
	client                              *http.Client
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a testRequest) request(t *testing.T, base string) *http.Request {
	t.Helper()
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	r, err := http.NewRequestWithContext(t.Context(), or(a.method, "POST"), base+or(a.path, "/ops"),
		strings.NewReader(or(a.body, `{"n":1}`)))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, a.header)
	if user := or(a.user, "ann"); user != "-" {
		r.Header.Set("X-User", user)
	}
	r.Header.Set("Content-Type", or(a.mediaType, "application/json"))
	r.Header[semelhttp.HeaderKey] = a.key
	if a.key == nil {
		r.Header[semelhttp.HeaderKey] = []string{"k1"}
	}
	return r
}

func (a testRequest) send(t *testing.T, base string) (answer, error) {
	t.Helper()
	client := testClient
	if a.client != nil {
		client = a.client
	}
	resp, err := client.Do(a.request(t, base))
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

func (a testRequest) do(t *testing.T, base string) answer {
	t.Helper()
	got, err := a.send(t, base)
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	return got
}

func (a answer) replayed() bool { return a.header.Get(semelhttp.HeaderReplayed) == "true" }

func (a answer) problem(t *testing.T) semelhttp.Problem {
	t.Helper()
	if got, want := a.header.Get("Content-Type"), "application/problem+json"; got != want {
		t.Errorf("Content-Type = %q of %d %s, want %q", got, a.status, a.body, want)
	}
	var p semelhttp.Problem
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Errorf("body %q: %v", a.body, err)
	}
	return p
}

// wantProblem checks that a is a problem of this package.
func wantProblem(t *testing.T, a answer, status int, code string) {
	t.Helper()
	p := a.problem(t)
	if a.status != status || p.Status != status || p.Code != code {
		t.Errorf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
	if p.Type != "/problems/"+code || p.Title == "" || p.Detail == "" {
		t.Errorf("problem %+v, want a type, a title and a detail", p)
	}
	if a.replayed() {
		t.Error("the layer's own error is marked as a replay")
	}
}

// wantFirst checks that a is a first response with that status and body.
func wantFirst(t *testing.T, a answer, status int, body string) {
	t.Helper()
	if a.status != status || a.body != body {
		t.Errorf("got %d %.200q, want %d %.200q", a.status, a.body, status, body)
	}
	if a.header[semelhttp.HeaderReplayed] != nil {
		t.Error("the first answer is marked as a replay")
	}
}

// wantReplay checks that a is a replay of first.
func wantReplay(t *testing.T, a, first answer) {
	t.Helper()
	if a.status != first.status || a.body != first.body {
		t.Errorf("replayed %d %.200q, want %d %.200q", a.status, a.body, first.status, first.body)
	}
	if !a.replayed() {
		t.Errorf("the replay of %d is not marked", first.status)
	}
	for _, name := range []string{"Content-Type", "Location", "Etag", "Link", "Content-Length"} {
		got, want := strings.Join(a.header[name], "|"), strings.Join(first.header[name], "|")
		if got != want {
			t.Errorf("replayed %s = %q, want %q", name, got, want)
		}
	}
}

// purge removes the records whose retention is over.
func (b *testEngine) purge(t *testing.T) {
	t.Helper()
	if _, err := b.Purge(t.Context(), 100); err != nil {
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
