package task_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/task"
)

var errCut = errors.New("the connection is cut")

// wire is one process's way to a store in memory.
type wire struct {
	*memory.Store

	mu    sync.Mutex // guards what follows
	cut   bool
	swaps [][]store.Change
	hook  func(ctx context.Context, changes []store.Change) error // called before each Swap
}

func newWire() *wire { return &wire{Store: memory.New(memory.Options{})} }

// newRigOn is newRig of a process whose way to the store is w.
func newRigOn(t *testing.T, w *wire, o task.Options, ops ...semel.Declared) *rig {
	t.Helper()
	r := &rig{t: t, mem: w.Store, seen: new(seen)}
	r.Engine = newEngine(t, w, r.seen, ops...)
	worker, err := task.New(r.Engine, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	r.worker = worker
	return r
}

// down cuts the wire, or mends it.
func (w *wire) down(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// on calls fn before each Swap; its error keeps the Swap from being made.
func (w *wire) on(fn func(ctx context.Context, changes []store.Change) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = fn
}

// swapped returns the Swaps so far whose first change leads to the state from the
// state.
func (w *wire) swapped(from, to store.State) [][]store.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	var of [][]store.Change
	for _, s := range w.swaps {
		if s[0].If.State == from && s[0].To.State == to {
			of = append(of, s)
		}
	}
	return of
}

func (w *wire) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errCut
	}
	return nil
}

func (w *wire) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	w.mu.Lock()
	w.swaps = append(w.swaps, changes)
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, changes); err != nil {
			return nil, err
		}
	}
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.Store.Swap(ctx, changes)
}

func (w *wire) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.Store.Get(ctx, ids)
}

func (w *wire) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := w.broken(); err != nil {
		return nil, err
	}
	return w.Store.Dequeue(ctx, d)
}
