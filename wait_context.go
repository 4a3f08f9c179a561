package semel

import (
	"context"
	"time"
)

type waitContextKey struct{}

// WithWaitContext returns a copy of ctx for a call that waits for others only as
// long as patience lasts. A call whose patience is over is told its error, and
// has run nothing. To the operation itself patience means nothing: once it runs,
// it is run to its end, whatever becomes of who asked for it. It is for adapters
// whose callers may hang up.
func WithWaitContext(ctx, patience context.Context) context.Context {
	return context.WithValue(ctx, waitContextKey{}, patience)
}

func waitContextOf(ctx context.Context) (context.Context, bool) {
	p, ok := ctx.Value(waitContextKey{}).(context.Context)
	return p, ok
}

// gone is why nobody is there any more for whom ctx's call would be run.
func callerGone(ctx context.Context) error {
	if p, ok := waitContextOf(ctx); ok && p.Err() != nil {
		return p.Err()
	}
	return ctx.Err()
}

// patient returns ctx for waiting: it ends with its patience, too.
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

// WaitContext is the context WithWaitContext(context.WithoutCancel(asker), asker), kept by
// an adapter in memory of its own: of the one who asks it has the values, and no end.
// Set it with Of before it is used, and then no more.
type WaitContext struct{ caller context.Context } //nolint:containedctx // a context has its parent

// Of makes p the patience of asker, and returns it.
func (p *WaitContext) Of(asker context.Context) context.Context {
	p.caller = asker
	return p
}

// Deadline returns that there is none.
func (p *WaitContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done returns nil: it does not end.
func (p *WaitContext) Done() <-chan struct{} { return nil }

// Err returns nil.
func (p *WaitContext) Err() error { return nil }

// Value returns what asker has under key.
func (p *WaitContext) Value(key any) any {
	switch key.(type) {
	case waitContextKey:
		return p.caller
	case *int:
		// Package context asks for the asker's own end by such a key, to tell its
		// cause for instance.
		return context.WithoutCancel(p.caller).Value(key)
	}
	return p.caller.Value(key)
}
