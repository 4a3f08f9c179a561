package semel

import "context"

// Remembers reports whether this engine, which has told o, has in its memory that
// it stands, so that it may be told again without asking the store. See
// Options.CacheBytes, without which it is false. It is for adapters that have more
// to remember of an outcome than the engine does.
func (c *Core) Remembers(o *Outcome) bool {
	return c.replays.holds(o.Record.ID, o.Record.Token)
}

// Again is [Core.Remembers] for an adapter that then tells o once more: it is
// observed as a replay. A closed engine says no.
func (c *Core) Again(ctx context.Context, o *Outcome) bool {
	if c.closed.Load() || !c.Remembers(o) {
		return false
	}
	c.see(ctx, EventReplayed, o.Record, nil)
	return true
}
