package adapter

import (
	"context"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// InjectTrace returns what e's Tracer needs to continue the trace of ctx in another process,
// or nil: it is for the headers of a message.
func InjectTrace(ctx context.Context, e semel.Runner) map[string]string {
	return engine.InjectTrace(ctx, engine.CoreOf(e))
}

// ExtractTrace returns ctx in the trace of an earlier [InjectTrace], or ctx if headers have
// none. Other headers do not matter.
func ExtractTrace(ctx context.Context, e semel.Runner, headers map[string]string) context.Context {
	return engine.ExtractTrace(ctx, engine.CoreOf(e), headers)
}
