package failures_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// fixture is one engine over one store, and the events that it saw.
type fixture[Tx any] struct {
	database[Tx]

	name   string // prefix of its operations and effects
	runner semel.Runner
	engine *semel.Engine[Tx] // the runner; nil: the store has no transactions
	faults *storetest.Faulty // of the runner's store
	seen   *seen
}

func newFixture[Tx any](t *testing.T, h database[Tx], name string) *fixture[Tx] {
	t.Helper()
	w := &fixture[Tx]{database: h, name: name, seen: new(seen)}
	if h.outside != nil {
		w.faults = storetest.NewFaulty(h.outside, nil)
		w.runner = w.runnerOf(t, w.faults.Plain())
		return w
	}
	faulty := storetest.NewFaultyTx(h.Store, nil)
	w.faults, w.engine = faulty.Faulty, w.process(t, faulty.Plain())
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
	inline  handlerMode = "inline"  // one transaction
	leased  handlerMode = "leased"  // the claim commits first
	outside handlerMode = "outside" // the store has no transactions
)

// handlerModes are the modes of a store with transactions.
func handlerModes() []handlerMode { return []handlerMode{inline, leased} }

func (h database[Tx]) modes() []handlerMode {
	if h.outside != nil {
		return []handlerMode{outside}
	}
	return handlerModes()
}

// longLease is for leaders that keep it on a slow machine.
const longLease = 5 * time.Minute

// operation are options for the mode.
func (w *fixture[Tx]) operation(by handlerMode) semel.OperationOptions[string] {
	switch by {
	case leased:
		return semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: longLease}
	case outside:
		return semel.OperationOptions[string]{Lease: longLease}
	case inline:
	}
	return semel.OperationOptions[string]{}
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
