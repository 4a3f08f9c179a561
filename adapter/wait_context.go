package adapter

import (
	"context"

	"github.com/semelgo/semel/internal/engine"
)

// WithWaitContext returns a copy of ctx for a call that waits for other callers
// only until wait ends. It then returns wait's error, and has run nothing. Once the
// operation runs, the end of wait has no effect. It is for adapters whose callers
// may hang up.
func WithWaitContext(ctx, wait context.Context) context.Context {
	return engine.WithWaitContext(ctx, wait)
}

// WaitContext is the context WithWaitContext(context.WithoutCancel(caller),
// caller), in memory of the adapter: it has the caller's values and does not end.
// Set it with Of before use, and only once.
type WaitContext = engine.WaitContext
