package semel_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// joiningStore is a store whose batches accept more changes while they are on their way. Each of its Swaps waits for
// one to be let through, and what may be joined for all to have come.
type joiningStore struct {
	store.TxStore[*memory.Tx]

	through, come chan struct{}
	first, joined int
	hidden        bool
}

func (g *joiningStore) Self() store.Store {
	if g.hidden {
		return g.TxStore
	}
	return g
}

func (g *joiningStore) Capabilities(ctx context.Context) (store.Capabilities, error) {
	c, err := g.TxStore.Capabilities(ctx)
	c.ConcurrentSwaps = 1
	return c, err
}

func (g *joiningStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	<-g.through
	return g.TxStore.Swap(ctx, changes)
}

func (g *joiningStore) SwapJoinable(ctx context.Context, changes []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
	<-g.come
	all := slices.Clone(changes)
	for joined := more(); len(joined) > 0; joined = more() {
		all = append(all, joined...)
	}
	g.first, g.joined = g.first+len(changes), g.joined+len(all)-len(changes)
	return g.TxStore.Swap(ctx, all)
}

// TestChangesJoinARunningBatch if the store allows it, and each caller receives
// its own answer. The engine does not bypass a store that wraps another one.
func TestChangesJoinARunningBatch(t *testing.T) {
	eachInBubble(t, map[string]bool{"not hidden": false, "hidden": true}, func(t *testing.T, hidden bool) {
		g := &joiningStore{
			TxStore: memory.New(memory.Options{}), hidden: hidden,
			through: make(chan struct{}), come: make(chan struct{}),
		}
		engine := check.Must(semel.New(g, semel.Options{Survive: store.NoFailure}))(t)
		defer engine.Close(t.Context())
		p := &process{Engine: engine}
		op, run := plain("op", semel.OperationOptions[string]{}), make(chan struct{})
		waits := make(map[string]<-chan answer)
		ask := func(keys ...string) {
			for _, key := range keys {
				fn := func(context.Context) (string, error) { <-run; return key, nil }
				waits[key] = blocked(func() answer { return do(t.Context(), p, op.Call(me, key, "in"), fn) })
			}
		}
		ask("alone", "a", "b", "c", "d", "e", "f", "g")
		g.through <- struct{}{}
		synctest.Wait()
		ask("w", "x", "y", "z")
		g.through <- struct{}{} // those of a to g have their claims, and the others are on their way
		synctest.Wait()
		close(run)
		synctest.Wait()
		close(g.come)
		close(g.through)
		for key, answers := range waits {
			(<-answers).want(t, key, false)
		}
		if (g.joined > 0) == hidden || hidden && g.first > 0 {
			t.Errorf("%d changes went where others may join, and %d joined", g.first, g.joined)
		}
	})
}

// startWithoutRead starts a process on a store with many writers, where a call assumes
// that its key is new, and finds an existing record only by its first write.
func startWithoutRead(t *testing.T, mem *memory.Store) *process {
	t.Helper()
	f := limitedOver(mem, func(c *store.Capabilities) { c.Exclusion = store.ExcludesRecord })
	return launch(t, f, storetest.WithBatches[*memory.Tx, memory.Batch](f, mem), semel.Options{})
}

// TestBatchWithoutReplyOnAPendingRecord: the batch was sent as if the key were new. Its
// reply is lost, and the record proves that nothing was committed. It is sent again for
// the Pending record, which no other call is running.
func TestBatchWithoutReplyOnAPendingRecord(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	createExisting(t, mem, theCall, pending)
	p := startWithoutRead(t, mem)
	p.faults.Decide(failFirst("AtomicBatch", fault{After: errCut}))
	doBatch(t.Context(), p, theCall, handing("done", put("effect"))).want(t, "done", false)
	wantEffect(t, mem, "effect", true)
	wantState(t, mem, theCall, store.Succeeded)
	p.seen.want(t, event.Fenced)
}

// TestBatchFailureOnAPendingRecord: the function fails before anything is sent, as if the
// key were new. Its failure is stored in the Pending record.
func TestBatchFailureOnAPendingRecord(t *testing.T) {
	t.Parallel()
	mem := memory.New(memory.Options{})
	createExisting(t, mem, theCall, pending)
	p := startWithoutRead(t, mem)
	doBatch(t.Context(), p, theCall, failingBatch(nil, semel.Final(errBoom))).wantFailure(t, "boom")
	wantState(t, mem, theCall, store.Failed)
}
