package engine

import (
	"context"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/cache"
	"github.com/semelgo/semel/store"
)

// CachedOutcome is an outcome in the memory of an engine.
type CachedOutcome struct {
	c      *Core
	kept   *cache.Entry
	record store.Record // for the Observer; the entry's own goes with the entry
}

// Cached returns the cached form of o, an outcome that this engine has returned, or
// nil if it is not cached.
func Cached(c *Core, o *Outcome) *CachedOutcome {
	current, k := c.cache.Get(o.Record.ID)
	if k == nil || current.Token != o.Record.Token {
		return nil
	}
	return &CachedOutcome{c, k, o.Record}
}

// Valid reports whether the engine would still answer with the outcome from its
// cache. It emits the event of a replay, so the adapter must then return the
// outcome once. After false, Valid never returns true again. After Close it returns
// false.
func (r *CachedOutcome) Valid(ctx context.Context) bool {
	if r.c.closed.Load() || !r.kept.IsValid() {
		return false
	}
	if r.c.observer != nil {
		r.c.emit(ctx, event.Replayed, r.record, nil)
	}
	return true
}
