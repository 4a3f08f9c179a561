package boundary_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type (
	engine = semel.Engine[*memory.Tx]
	plan   = semel.OperationOptions[string]
)

var caller = semel.ScopeOf("caller")

// world is one store in memory, whose clock the test moves, and one engine over it.
type world struct {
	*engine

	mem  *memory.Store
	skip atomic.Int64 // how far the store's clock is ahead

	outside int // effects outside of transactions
	drawn   int // effects within transactions, committed or not
}

// effect makes one effect outside of transactions.
func (w *world) effect() { w.outside++ }

// effectIn returns what makes one effect within tx.
func (w *world) effectIn(tx *memory.Tx) func() {
	return func() {
		w.drawn++
		if err := tx.Put(strconv.Itoa(w.drawn), []byte("done")); err != nil {
			panic(err)
		}
	}
}

// effects is how many effects there are.
func (w *world) effects() int {
	n := w.outside
	for i := range w.drawn {
		if _, committed := w.mem.Value(strconv.Itoa(i + 1)); committed {
			n++
		}
	}
	return n
}

func newWorld(t *testing.T, operations ...semel.Declared) *world {
	t.Helper()
	w := new(world)
	w.mem = memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.skip.Load())) }})
	w.engine = w.process(t, w.mem, operations...)
	return w
}

// process returns another engine, over s. It is closed when the test ends.
func (w *world) process(t *testing.T, s store.TxStore[*memory.Tx], operations ...semel.Declared) *engine {
	t.Helper()
	e, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: operations})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // attempts that were left on purpose are not waited for
		_ = e.Close(ctx)
	})
	return e
}

// crash leaves an attempt of c whose process is gone, and whose lease is over.
func (w *world) crash(t *testing.T, c semel.Call) {
	t.Helper()
	a, _, err := semel.Begin(t.Context(), w.process(t, w.mem), c)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	t.Cleanup(a.Abandon)
	w.skip.Add(int64(time.Hour))
}

// record returns c's record, or the zero Record.
func (w *world) record(t *testing.T, c semel.Call) store.Record {
	t.Helper()
	found, err := w.mem.Get(t.Context(), []store.ID{c.ID()})
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if found[0].Record == nil {
		return store.Record{}
	}
	return *found[0].Record
}

// brokenStore is a store whose transactions all end with an error.
type brokenStore struct {
	*memory.Store

	verdict store.Verdict
	err     error
}

func (b *brokenStore) Atomic(ctx context.Context, id store.ID, hold bool,
	run func(context.Context, *memory.Tx, store.SwapResult) (*store.Change, error),
) (store.Verdict, error) {
	_, err := b.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, s store.SwapResult) (*store.Change, error) {
		_, err := run(ctx, tx, s)
		return nil, errors.Join(errRolledBack, err)
	})
	return b.verdict, errors.Join(b.err, err)
}

var errRolledBack = errors.New("rolled back")

// bubble runs test where waiting takes no time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}
