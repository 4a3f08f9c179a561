package semel

import (
	"context"

	"github.com/semelgo/semel/store"
)

// CachedOutcome is an outcome that an engine has in its memory. Its methods may be
// called concurrently.
type CachedOutcome struct {
	c      *Core
	kept   *cacheEntry
	record store.Record // for the Observer: that of kept goes with it
}

// Cached returns what this engine, which has told o, has of it in its memory, so
// that it may be told again without asking the store; nil if nothing. See
// Options.CacheBytes, without which it is always nil. It is for adapters that have
// more to remember of an outcome than the engine does.
func (c *Core) Cached(o *Outcome) *CachedOutcome {
	k := c.cache.lookup(o.Record.ID, o.Record.Token)
	if k == nil {
		return nil
	}
	return &CachedOutcome{c, k, o.Record}
}

// Again reports whether the engine would tell the outcome from its memory now, for
// an adapter that then tells it once more: it is observed as a replay. Once it has
// said no it will not say yes again, whatever the engine comes to remember of the key
// later. A closed engine says no.
func (r *CachedOutcome) Valid(ctx context.Context) bool {
	if r.c.closed.Load() || !r.kept.isValid() {
		return false
	}
	if r.c.options.Observer != nil {
		r.c.emit(ctx, EventReplayed, r.record, nil)
	}
	return true
}
