package semel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

var errStatement = errors.New("the statement's error")

// put is a batch of one statement.
func put(key string) memory.Batch {
	return memory.Batch{func(tx *memory.Tx) error { return tx.Put(key, nil) }}
}

type batchFunc = func(context.Context) (string, memory.Batch, error)

// handing is a function that returns v and hands over b.
func handing(v string, b memory.Batch) batchFunc {
	return func(context.Context) (string, memory.Batch, error) { return v, b, nil }
}

// failingBatch is a function that hands over b and returns err.
func failingBatch(b memory.Batch, err error) batchFunc {
	return func(context.Context) (string, memory.Batch, error) { return "", b, err }
}

// neverBatch is a function that must not run.
func neverBatch(t *testing.T) batchFunc {
	return func(ctx context.Context) (string, memory.Batch, error) {
		v, err := never(t)(ctx)
		return v, nil, err
	}
}

func doBatch(ctx context.Context, p *process, c semel.Call, fn batchFunc) answer {
	v, replayed, err := semel.DoBatch(ctx, p.Engine, c, fn)
	return answer{v, replayed, err}
}

// Of many callers of one key in two processes, one commits its statements.
func TestBatchWithManyCallers(t *testing.T) {
	t.Parallel()
	p, other, mem := pair(t, semel.Options{Wait: time.Minute})
	got := make([]answer, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			got[i] = doBatch(t.Context(), []*process{p, other}[i%2], theCall, handing(fmt.Sprint(i), put(fmt.Sprint(i))))
		})
	}
	wg.Wait()
	for i, a := range got {
		a.want(t, got[0].v, a.replayed)
		wantEffect(t, mem, fmt.Sprint(i), fmt.Sprint(i) == got[0].v)
	}
}

// What fails leaves nothing, and is kept as the operation says, whether it was the
// function or a statement.
func TestBatchFails(t *testing.T) {
	statement := func(err error) batchFunc {
		return handing("v", append(put("written"), func(*memory.Tx) error { return err }))
	}
	keep := semel.OperationOptions[string]{OnError: semel.Keep}
	type row struct {
		o    semel.OperationOptions[string]
		fn   batchFunc
		kept bool
	}
	eachInBubble(t, map[string]row{
		"function":         {fn: failingBatch(put("written"), errStatement)},
		"function, kept":   {o: keep, fn: failingBatch(nil, errStatement), kept: true},
		"function, final":  {fn: failingBatch(nil, semel.Final(errStatement)), kept: true},
		"statement":        {fn: statement(errStatement)},
		"statement, kept":  {o: keep, fn: statement(errStatement), kept: true},
		"statement, final": {fn: statement(semel.Final(errStatement)), kept: true},
	}, func(t *testing.T, row row) {
		p, call := soloCall(t, row.o)
		a := doBatch(t.Context(), p, call, row.fn)
		check.Fails(t, a.err, "DoBatch")
		wantEffect(t, p.mem, "written", false)
		again := doBatch(t.Context(), p, call, handing("again", put("again")))
		wantEffect(t, p.mem, "again", !row.kept)
		if row.kept {
			again.wantFailure(t, errStatement.Error())
			return
		}
		a.wantErr(t, errStatement)
		check.Equal(t, semel.VerdictOf(a.err), store.NotCommitted, "verdict")
		again.want(t, "again", false)
	})
}

// A batch takes over an enqueued call, and leaves a running one alone.
func TestBatchOverExistingRecords(t *testing.T) {
	t.Parallel()
	p, mem := solo(t, semel.Options{})
	doTx(t.Context(), p, theCall, func(context.Context, *memory.Tx) (string, error) {
		doBatch(t.Context(), p, theCall, handing("v", put("beside"))).wantErr(t, semel.ErrInProgress)
		return "", errStatement
	}).wantErr(t, errStatement)
	wantEffect(t, mem, "beside", false)
	queued := plain("queued", queueable(semel.OperationOptions[string]{})).Call(me, "k", "in")
	check.Must(semel.Enqueue(t.Context(), p, queued, semel.EnqueueOptions{}))(t)
	doBatch(t.Context(), p, queued, handing("v", put("after"))).want(t, "v", false)
	wantEffect(t, mem, "after", true)
}

// What DoBatch cannot do is refused before anything is run.
func TestBatchRejected(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	for name, o := range map[string]semel.OperationOptions[string]{
		"policy":     {Policy: semel.Hold()},
		"lease":      {Policy: semel.Atomic(), Lease: time.Second},
		"generation": {Generation: time.Hour},
	} {
		a := doBatch(t.Context(), p, plain("op", o).Call(me, "k", "in"), neverBatch(t))
		check.ErrorIs(t, a.err, semel.ErrInvalid, "DoBatch with a %s", name)
	}
	_, _, err := semel.DoBatch(t.Context(), p.Engine, theCall, func(ctx context.Context) (string, []string, error) {
		v, err := never(t)(ctx)
		return v, nil, err
	})
	check.ErrorIs(t, err, semel.ErrInvalid, "DoBatch of another kind of batch")
	doTx(t.Context(), p, theCall, func(ctx context.Context, _ *memory.Tx) (string, error) {
		doBatch(ctx, p, theCall, neverBatch(t)).wantErr(t, semel.ErrInvalid)
		return "v", nil
	}).want(t, "v", false)
}

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
