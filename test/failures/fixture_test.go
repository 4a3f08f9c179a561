package failures_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/semelhttp"
	"github.com/semelgo/semel/store"
)

// fixture is one engine over one store, and the events that it saw.
type fixture[Tx any] struct {
	database[Tx]

	name   string // prefix of its operations and effects
	runner semel.Runner
	engine *semel.Engine[Tx] // the runner; nil: the store has no transactions
	swaps  *swapHook
	hooks  *hooks[Tx] // nil: the store has no transactions
	seen   *seen
}

func newFixture[Tx any](t *testing.T, h database[Tx], name string) *fixture[Tx] {
	t.Helper()
	w := &fixture[Tx]{database: h, name: name, swaps: &swapHook{Store: h.records()}, seen: new(seen)}
	if h.outside != nil {
		w.runner = w.runnerOf(t, w.swaps)
		return w
	}
	w.hooks = &hooks[Tx]{TxStore: h.Store, swaps: w.swaps}
	w.engine = w.process(t, w.hooks)
	w.runner = w.engine
	return w
}

// records is the store, with transactions or without.
func (h database[Tx]) records() store.Store {
	if h.outside != nil {
		return h.outside
	}
	return h.Store
}

// another is an engine of another process.
func (w *fixture[Tx]) another(t *testing.T) semel.Runner {
	t.Helper()
	if w.outside != nil {
		return w.runnerOf(t, w.outside)
	}
	return w.process(t, w.Store)
}

func (w *fixture[Tx]) options() semel.Options {
	return semel.Options{Survive: store.NoFailure, Observer: w.seen, RecordTimeout: 20 * time.Second}
}

// runnerOf is process for a store without transactions.
func (w *fixture[Tx]) runnerOf(t *testing.T, s store.Store) semel.Runner {
	t.Helper()
	e, err := semel.NewRunner(s, w.options())
	check.Require(t, err, "NewRunner")
	closeAtEnd(t, e)
	return e
}

// process is an engine over s, as each of several processes has one.
func (w *fixture[Tx]) process(t *testing.T, s store.TxStore[Tx]) *semel.Engine[Tx] {
	t.Helper()
	e, err := semel.New(s, w.options())
	check.Require(t, err, "New")
	closeAtEnd(t, e)
	return e
}

func closeAtEnd(t *testing.T, e semel.Runner) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		check.NoError(t, e.Close(ctx), "Close")
	})
}

// do runs a call with effects of its keys, in a transaction if the store has any.
func do[T, Tx any](ctx context.Context, w *fixture[Tx], e semel.Runner, c semel.Call,
	fn func(ctx context.Context, effect func(key string) error) (T, error),
) (T, bool, error) {
	effect := func(ctx context.Context, tx Tx) func(key string) error {
		return func(key string) error { return w.effect(ctx, tx, key) }
	}
	if w.outside == nil {
		return semel.DoTx(ctx, e.(*semel.Engine[Tx]), c, func(ctx context.Context, tx Tx) (T, error) { return fn(ctx, effect(ctx, tx)) })
	}
	return semel.Do(ctx, e, c, func(ctx context.Context) (T, error) {
		var none Tx
		return fn(ctx, effect(ctx, none))
	})
}

// op is the name of an operation of this fixture only.
func (w *fixture[Tx]) op(name string) string { return w.name + "-" + name }

// effect writes one more effect of key.
func (w *fixture[Tx]) effect(ctx context.Context, tx Tx, key string) error {
	return w.Effect(ctx, tx, w.op(key))
}

func (w *fixture[Tx]) effects(key string) int { return w.Effects(w.op(key)) }

// wantEffects requires the number of effects of key.
func (w *fixture[Tx]) wantEffects(t *testing.T, key string, want int) {
	t.Helper()
	check.Equal(t, w.effects(key), want, "%s: effects", key)
}

// handlerMode is how a handler's effect and response are stored.
type handlerMode string

const (
	inline  handlerMode = "inline"  // semelhttp.Atomic: one transaction
	leased  handlerMode = "leased"  // semelhttp.Middleware and semel.InTx
	outside handlerMode = "outside" // semelhttp.Middleware; the store has no transactions
)

// handlerModes are the modes of a store with transactions.
func handlerModes() []handlerMode { return []handlerMode{inline, leased} }

func (h database[Tx]) modes() []handlerMode {
	if h.outside != nil {
		return []handlerMode{outside}
	}
	return handlerModes()
}

// operation are options for the mode.
func (w *fixture[Tx]) operation(by handlerMode) semel.OperationOptions[string] {
	switch by {
	case leased:
		return semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: w.Lease}
	case outside:
		return semel.OperationOptions[string]{Lease: w.Lease}
	case inline:
	}
	return semel.OperationOptions[string]{}
}

// txHandler is a handler within its transaction. Its error rolls back.
type txHandler func(w http.ResponseWriter, r *http.Request, effect func() error) error

// serve serves s over a real connection, under an operation of that name.
func (w *fixture[Tx]) serve(t *testing.T, by handlerMode, s txHandler) string {
	t.Helper()
	return serve(t, w.protect(t, w.runner, by, w.handler(w.engine, by, s)))
}

// handler runs s in the transaction of its mode.
func (w *fixture[Tx]) handler(e *semel.Engine[Tx], by handlerMode, s txHandler) http.Handler {
	effect := func(ctx context.Context, r *http.Request) func() error {
		return func() error {
			tx, ok := semel.TxOf(ctx, e)
			if !ok {
				return io.ErrClosedPipe
			}
			return w.effect(context.WithoutCancel(ctx), tx, keyOf(r))
		}
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var err error
		switch by {
		case inline:
			err = s(rw, r, effect(r.Context(), r))
		case outside:
			var none Tx
			err = s(rw, r, func() error { return w.effect(r.Context(), none, keyOf(r)) })
		case leased:
			_, err = semel.InTx(r.Context(), e, func(ctx context.Context, _ Tx) (any, error) {
				return nil, s(rw, r.WithContext(ctx), effect(ctx, r))
			})
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
	})
}

func (w *fixture[Tx]) protect(t *testing.T, e semel.Runner, by handlerMode, h http.Handler) http.Handler {
	t.Helper()
	o := semelhttp.Options{ScopeFunc: byUser}
	var createdHandler func(http.Handler) http.Handler
	var err error
	if by == inline {
		createdHandler, err = semelhttp.Atomic(e.(*semel.Engine[Tx]), semel.Define(w.op("inline"), semel.OperationOptions[semelhttp.Request]{}), o)
	} else {
		of := w.operation(by)
		createdHandler, err = semelhttp.Middleware(e, semel.Define(w.op("leased"), semel.OperationOptions[semelhttp.Request]{
			Policy: of.Policy, Lease: of.Lease,
		}), o)
	}
	check.Require(t, err, "protect")
	return createdHandler(h)
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func byUser(r *http.Request) (semel.Scope, error) { return semel.ScopeOf(r.Header.Get("X-User")), nil }

func keyOf(r *http.Request) string {
	return r.Header.Get("X-User") + "/" + r.Header.Get(semelhttp.HeaderKey)
}

// testClient has a transport of its own: httptest.Server.Close closes the idle
// connections of http.DefaultTransport, also one that a parallel test is about to use.
var testClient = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}

// answer is a response that was read completely.
type answer struct {
	status   int
	header   http.Header
	trailer  http.Header
	body     string
	replayed bool
}

// request sends key as user's, and returns the response.
func request(t *testing.T, base, user, key string) answer {
	t.Helper()
	a, err := send(t.Context(), testClient, base, user, key)
	check.Require(t, err, "%s's %s", user, key)
	return a
}

func newRequest(ctx context.Context, base, user, key string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/ops", strings.NewReader(`{"n":1}`))
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-User", user)
	r.Header.Set(semelhttp.HeaderKey, key)
	return r, nil
}

func send(ctx context.Context, c *http.Client, base, user, key string) (answer, error) {
	r, err := newRequest(ctx, base, user, key)
	if err != nil {
		return answer{}, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{
		resp.StatusCode, resp.Header, resp.Trailer, string(body),
		resp.Header.Get(semelhttp.HeaderReplayed) == "true",
	}, err
}

// wantReplay requires that a is marked as a replay of first.
func wantReplay(t *testing.T, a, first answer) {
	t.Helper()
	if a.status != first.status || a.body != first.body || !a.replayed {
		t.Errorf("the repeat got %d %.60q, replayed %v, want %d %.60q again",
			a.status, a.body, a.replayed, first.status, first.body)
	}
}

// seen counts events by their kind.
type seen struct {
	mu    sync.Mutex
	kinds map[event.Kind]int // guarded by mu
}

func (s *seen) Observe(_ context.Context, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds == nil {
		s.kinds = make(map[event.Kind]int)
	}
	s.kinds[e.Kind]++
}

func (s *seen) count(kind event.Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[kind]
}
