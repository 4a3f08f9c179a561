package engine

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// The keys of an operation's values in its function's context. An operation answers
// all of them, possibly with nil, so that a function never finds a value of an
// outer operation.
type (
	attemptKey struct{} // *Attempt
	callKey    struct{} // Call
	txKey      struct{} // *txContext
)

// TxOf returns the transaction that e opened for the operation of ctx: inside the
// function of [DoTx] or [InTx], or inside a handler whose adapter runs it in one.
func TxOf[Tx any](ctx context.Context, e *Engine[Tx]) (Tx, bool) {
	var none Tx
	t, ok := ctx.Value(txKey{}).(*txContext)
	if !ok || t.c != e.Core {
		return none, false
	}
	tx, ok := t.tx.(Tx)
	return tx, ok
}

// txContext is the context of a function in a transaction, or of one that builds a
// batch of statements.
type txContext struct {
	context.Context //nolint:containedctx // it is one

	call Call  // empty: of InTx, whose operation is that of the attempt
	c    *Core // that opened tx; nil: DoBatch, whose function has no transaction
	tx   any

	mu    sync.Mutex
	after []func() // to be called after the transaction has ended
}

// Value returns the values of the transaction, and of its operation.
func (t *txContext) Value(key any) any {
	operation := t.call.op != nil
	switch key := key.(type) {
	case callKey:
		if operation {
			return t.call
		}
	case attemptKey, waitContextKey:
		if operation {
			return nil
		}
	case txKey:
		if t.c == nil {
			return nil
		}
		return t
	case openTxKey:
		if t.c != nil && t.c.connections == key.connections {
			return true
		}
	}
	return t.Context.Value(key)
}

// openTxKey is the key for whether a transaction over these connections is open,
// of the innermost operation or of an outer one.
type openTxKey struct{ connections any }

// notWithinTx rejects a call that would wait for a transaction that is open around
// ctx: a call that needs a transaction of its own, because both use connections of
// one pool, and on a store that lets one transaction write at a time every call
// that writes.
func (c *Core) notWithinTx(ctx context.Context, opens bool) error {
	if !opens && c.caps.Exclusion != store.ExcludesAll || ctx.Value(openTxKey{c.connections}) == nil {
		return nil
	}
	if opens {
		return callerr.Invalid("ctx", "belongs to an open transaction over the same connections: a second one could wait for it")
	}
	return callerr.Invalid("ctx", "belongs to an open transaction of this database, which must end before any other write")
}

// callAfter calls the functions of AfterTx. A goroutine that the handler has left behind
// may still add some; those are not called.
func (t *txContext) callAfter() {
	t.mu.Lock()
	after := t.after
	t.after = nil
	t.mu.Unlock()
	for _, fn := range after {
		fn()
	}
}

// AfterTx has fn called once after the transaction of ctx has ended, committed or not,
// and reports whether ctx belongs to a transaction of c.
func AfterTx(ctx context.Context, c *Core, fn func()) bool {
	t, ok := ctx.Value(txKey{}).(*txContext)
	if !ok || t.c != c {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.after = append(t.after, fn)
	return true
}

type waitContextKey struct{}

// WithWaitContext returns a copy of ctx for a call that waits for other callers
// only until wait ends.
func WithWaitContext(ctx, wait context.Context) context.Context {
	return context.WithValue(ctx, waitContextKey{}, wait)
}

// callerGone returns an error if the caller no longer waits for ctx's call.
func callerGone(ctx context.Context) error {
	if p, ok := ctx.Value(waitContextKey{}).(context.Context); ok && p.Err() != nil {
		return p.Err()
	}
	return ctx.Err()
}

// waitContext returns a context that ends with ctx and with its wait context.
func waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	p, ok := ctx.Value(waitContextKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// WaitContext is the context WithWaitContext(context.WithoutCancel(caller),
// caller), in memory of the adapter: it has the caller's values and does not end.
type WaitContext struct{ caller context.Context } //nolint:containedctx // a context has its parent

// Of sets the caller's context and returns w.
func (w *WaitContext) Of(caller context.Context) context.Context {
	w.caller = caller
	return w
}

// Deadline returns that there is none.
func (w *WaitContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil, because the context does not end.
func (w *WaitContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (w *WaitContext) Err() error { return nil }

// Value returns the caller's value of key.
func (w *WaitContext) Value(key any) any {
	switch key.(type) {
	case waitContextKey:
		return w.caller
	case *int:
		// Package context uses this key to find the caller's own end, for its cause
		// for instance.
		return context.WithoutCancel(w.caller).Value(key)
	}
	return w.caller.Value(key)
}
