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

var errConnectionLost = errors.New("the connection was lost")

// faultyStore is one process's connection to a store in memory. Tests make it
// fail.
type faultyStore struct {
	*memory.Store

	mu    sync.Mutex // guards the fields below
	cut   bool
	swaps [][]store.Change
	hook  func(ctx context.Context, changes []store.Change) error // called before each Swap
}

func newFaultyStore() *faultyStore { return &faultyStore{Store: memory.New(memory.Options{})} }

// newRigOver is newRig for a process that uses the store w.
func newRigOver(t *testing.T, w *faultyStore, o task.Options, ops ...semel.Declared) *rig {
	t.Helper()
	r := &rig{t: t, mem: w.Store, seen: new(eventLog)}
	r.Engine = newEngine(t, w, r.seen, ops...)
	worker, err := task.New(r.Engine, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	r.worker = worker
	return r
}

// setDown makes all calls fail, or work again.
func (w *faultyStore) setDown(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
}

// beforeSwap calls fn before each Swap. If fn returns an error, the Swap is not
// made.
func (w *faultyStore) beforeSwap(fn func(ctx context.Context, changes []store.Change) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = fn
}

// swapsBetween returns the Swaps so far whose first change leads from one state
// to the other.
func (w *faultyStore) swapsBetween(from, to store.State) [][]store.Change {
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

func (w *faultyStore) unavailable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return errConnectionLost
	}
	return nil
}

func (w *faultyStore) Swap(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
	w.mu.Lock()
	w.swaps = append(w.swaps, changes)
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, changes); err != nil {
			return nil, err
		}
	}
	if err := w.unavailable(); err != nil {
		return nil, err
	}
	return w.Store.Swap(ctx, changes)
}

func (w *faultyStore) Get(ctx context.Context, ids []store.ID) ([]store.SwapResult, error) {
	if err := w.unavailable(); err != nil {
		return nil, err
	}
	return w.Store.Get(ctx, ids)
}

func (w *faultyStore) Dequeue(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
	if err := w.unavailable(); err != nil {
		return nil, err
	}
	return w.Store.Dequeue(ctx, d)
}
