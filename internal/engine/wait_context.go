package engine

import (
	"context"
	"time"
)

type waitContextKey struct{}

// WithWaitContext returns a copy of ctx for a call that waits for other callers
// only until wait ends.
func WithWaitContext(ctx, wait context.Context) context.Context {
	return context.WithValue(ctx, waitContextKey{}, wait)
}

func waitContextOf(ctx context.Context) (context.Context, bool) {
	p, ok := ctx.Value(waitContextKey{}).(context.Context)
	return p, ok
}

// callerGone returns an error if the caller no longer waits for ctx's call.
func callerGone(ctx context.Context) error {
	if p, ok := waitContextOf(ctx); ok && p.Err() != nil {
		return p.Err()
	}
	return ctx.Err()
}

// waitContext returns a context that ends with ctx and with its wait context.
func waitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	p, ok := waitContextOf(ctx)
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
