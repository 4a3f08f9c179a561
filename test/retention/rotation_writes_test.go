package retention_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/storetest"
)

// pausingStore calls a function after it has made a change within a transaction.
type pausingStore[Tx any] struct {
	store.TxStore[Tx]

	after func()
}

func (p pausingStore[Tx]) SwapTx(ctx context.Context, tx Tx, changes []store.Change) ([]store.SwapResult, error) {
	answers, err := p.TxStore.SwapTx(ctx, tx, changes)
	p.after()
	return answers, err
}

// observedStore calls a function when a transaction's function runs or has to wait.
type observedStore[Tx any] struct {
	store.TxStore[Tx]

	began func()
}

func (w observedStore[Tx]) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	return w.TxStore.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		change, err := run(ctx, tx, current)
		w.began()
		return change, err
	})
}

// rotationBetweenWrites has one process write the record of the next generation and
// not yet its own, while another process works in the next generation.
func rotationBetweenWrites[Tx any](t *testing.T, s storetest.Subject[Tx], o options) {
	op := semel.Define(t.Name(), o)
	caps := check.Must(s.Store.Capabilities(t.Context()))(t)
	between, began := make(chan struct{}), make(chan struct{})
	var first, second sync.Once
	seen, slow := s, s
	seen.Store = observedStore[Tx]{s.Store, func() { second.Do(func() { close(began) }) }}
	next := newClockedProcess(t, seen, generation+time.Second)
	slow.Store = pausingStore[Tx]{s.Store, func() {
		first.Do(func() {
			close(between)
			if caps.Exclusion != store.ExcludesAll { // a store with a single writer excludes the second run
				<-began
			}
		})
	}}
	late := newClockedProcess(t, slow, generation-time.Second)
	var all sync.WaitGroup
	all.Go(func() {
		if got, _ := late.callUntilAnswered(t, op, "k", 1, func() {}); got != 1 {
			t.Errorf("the first got %d, want its own", got)
		}
	})
	<-between
	if got, replayed := next.callUntilAnswered(t, op, "k", 2, func() {}); got != 1 || !replayed {
		t.Errorf("the second got %d, replayed %v, want the first one's", got, replayed)
	}
	all.Wait()
	check.Equal(t, s.Effects(op.Name()+"k"), 1, "a key: effects")
}
