package adapter

import (
	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/engine"
)

// CachedOutcome is an outcome in the memory of an engine. Its methods may be called
// concurrently.
type CachedOutcome = engine.CachedOutcome

// Cached returns the cached form of o, an outcome that this engine has returned, or
// nil if it is not cached. Without Options.CacheBytes it is always nil. It is for
// adapters that cache more about an outcome than the engine does.
func Cached(e semel.Runner, o *Outcome) *CachedOutcome {
	return engine.Cached(engine.CoreOf(e), o)
}
