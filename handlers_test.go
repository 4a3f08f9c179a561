package semel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

type (
	handler   = func(ctx context.Context) (string, error)
	txHandler = func(ctx context.Context, tx *memory.Tx) (string, error)
)

// returns is a handler that returns v.
func returns(v string) handler { return func(context.Context) (string, error) { return v, nil } }

// fails is a handler that returns err.
func fails(err error) handler { return func(context.Context) (string, error) { return "", err } }

// takes is a handler that returns "v" after d.
func takes(d time.Duration) handler {
	return func(context.Context) (string, error) { pass(d); return "v", nil }
}

// until is a handler that returns "v" once finish is closed.
func until(finish <-chan struct{}) handler {
	return func(context.Context) (string, error) { <-finish; return "v", nil }
}

// never is a handler that must not run.
func never(t *testing.T) handler {
	return func(context.Context) (string, error) {
		t.Error("the function ran, want it not to")
		return "ran", nil
	}
}

func neverTx(t *testing.T) txHandler {
	return func(ctx context.Context, _ *memory.Tx) (string, error) { return never(t)(ctx) }
}

// counted counts the runs of fn.
type counted struct {
	mu   sync.Mutex
	runs int
}

func (c *counted) of(fn handler) handler {
	return func(ctx context.Context) (string, error) {
		c.mu.Lock()
		c.runs++
		c.mu.Unlock()
		return fn(ctx)
	}
}

func (c *counted) want(t *testing.T, runs int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	check.Equal(t, c.runs, runs, "the function ran")
}

// puts is a transaction's function that leaves an effect called name and
// returns v.
func puts(name, v string) txHandler {
	return func(_ context.Context, tx *memory.Tx) (string, error) { return v, tx.Put(name, []byte("done")) }
}
