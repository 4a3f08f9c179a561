package boundary_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

type (
	engine = semel.Engine[*memory.Tx]
	plan   = semel.OperationOptions[string]
)

var caller = semel.ScopeOf("caller")

// fixture is a memory store, whose clock the test moves, and an engine over it.
type fixture struct {
	*engine

	mem   *memory.Store
	ahead atomic.Int64 // how far the store's clock is ahead

	effectsOutside int // effects outside of transactions
	effectsInTx    int // effects within transactions, committed or not
}

// effect makes one effect outside of transactions.
func (w *fixture) effect() { w.effectsOutside++ }

// effectIn returns what makes one effect within tx.
func (w *fixture) effectIn(tx *memory.Tx) func() {
	return func() {
		w.effectsInTx++
		if err := tx.Put(strconv.Itoa(w.effectsInTx), []byte("done")); err != nil {
			panic(err)
		}
	}
}

// effects is how many effects there are.
func (w *fixture) effects() int {
	n := w.effectsOutside
	for i := range w.effectsInTx {
		if _, committed := w.mem.Value(strconv.Itoa(i + 1)); committed {
			n++
		}
	}
	return n
}

func newFixture(t *testing.T, operations ...semel.Declared) *fixture {
	t.Helper()
	w := new(fixture)
	w.mem = memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }})
	w.engine = w.process(t, w.mem, operations...)
	return w
}

// process returns another engine over s. It is closed when the test ends.
func (w *fixture) process(t *testing.T, s store.TxStore[*memory.Tx], operations ...semel.Declared) *engine {
	t.Helper()
	e, err := semel.New(s, semel.Options{Survive: store.NoFailure, Operations: operations})
	check.Require(t, err, "New")
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // Close does not wait for attempts that were abandoned
		_ = e.Close(ctx)
	})
	return e
}

// crash leaves an attempt of c whose process has died and whose lease has expired.
func (w *fixture) crash(t *testing.T, c semel.Call) {
	t.Helper()
	a, _, err := adapter.Begin(t.Context(), w.process(t, w.mem), c)
	check.Require(t, err, "Begin")
	t.Cleanup(a.Abandon)
	w.ahead.Add(int64(time.Hour))
}

// record returns c's record, or the zero Record.
func (w *fixture) record(t *testing.T, c semel.Call) store.Record {
	t.Helper()
	contextValues, err := w.mem.Get(t.Context(), []store.ID{c.ID()})
	check.Require(t, err, "Get")
	if contextValues[0].Record == nil {
		return store.Record{}
	}
	return *contextValues[0].Record
}

// eachInnerCall runs test in a bubble for each outer operation, each end of an inner
// call, and each form of its error.
func eachInnerCall[By any](t *testing.T, outer map[string]By, test func(*testing.T, By, innerCall, func(error) error)) {
	t.Helper()
	t.Parallel()
	for outerName, by := range outer {
		for endingName, end := range innerCalls() {
			for formName, form := range errorForms() {
				t.Run(fmt.Sprintf("%s/%s/%s", outerName, endingName, formName), func(t *testing.T) {
					bubble(t, func(t *testing.T) { test(t, by, end, form) })
				})
			}
		}
	}
}

// bubble runs test in a synctest bubble, where waiting takes no time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}
