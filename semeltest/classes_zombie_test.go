package semeltest_test

import (
	"context"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// zombieClasses let a leader write that was taken over.
func zombieClasses() []class {
	return []class{
		{"a heartbeat that is not asked for its attempt", "Zombie/Heartbeat", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if isBeat(*c) && isOutrun(*c, now) {
					c.If, c.To.Token = now.Token, now.Token
				}
			})
		}},
		{"an end that is not asked for its attempt", "Zombie/Complete", letsZombiesEnd(store.Succeeded)},
		{"a release that is not asked for its attempt", "Zombie/Release", letsZombiesEnd(store.Pending)},
		{"a doubt that is not asked for its attempt", "Zombie/Doubt", letsZombiesEnd(store.InDoubt)},
		{"a claim that is made again when it is asked again", "Zombie/Claim", func(h *hooked) {
			made := make(map[store.Token]bool)
			h.changing(func(c *store.Change, now store.Record) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if isCreate(*c) && made[c.To.Token] && now.State == store.InProgress && now.Token != c.To.Token {
					c.If = now.Token
				}
				made[c.To.Token] = true
			})
		}},
		{"a heartbeat that brings back what was purged", "Zombie/AfterPurge", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if isBeat(*c) && now.State == store.Absent {
					c.If = store.Token{}
				}
			})
		}},
		{"a zombie's last change that is made", "ZombieTx/Complete", func(h *hooked) {
			h.lastChange(func(c *store.Change, stands, now store.Record) {
				if isOutrun(*c, stands) {
					c.If = now.Token
				}
			})
		}},
		{"a last change that goes by what stood first", "ZombieTx/TakenOverInside", func(h *hooked) {
			h.lastChange(func(c *store.Change, stands, now store.Record) {
				if stands.Token == c.If && isOutrun(*c, now) {
					c.If = now.Token
				}
			})
		}},
		{"a zombie's write in a transaction that is made", "ZombieTx/Write", func(h *hooked) {
			h.swapTx = func(_ *memory.Tx, cs []store.Change) []store.Change {
				for i := range cs {
					if now := h.now(cs[i].To.ID); isOutrun(cs[i], now) && !isBeat(cs[i]) {
						cs[i].If = now.Token
					}
				}
				return cs
			}
		}},
	}
}

// isOutrun says that c is of a leader's own attempt, and that a later one is
// running.
func isOutrun(c store.Change, now store.Record) bool {
	return c.If.State == store.InProgress && now.State == store.InProgress &&
		now.Attempt > c.If.Attempt && c.To.Attempt == c.If.Attempt && c.To.Owner == c.If.Owner
}

func letsZombiesEnd(in store.State) func(h *hooked) {
	return func(h *hooked) {
		h.changing(func(c *store.Change, now store.Record) {
			if c.To.State == in && isOutrun(*c, now) {
				c.If = now.Token
			}
		})
	}
}

// lastChange changes the last change of a transaction, given what stood when it
// began and what stands at its end.
func (h *hooked) lastChange(change func(c *store.Change, stands, now store.Record)) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, stands store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, stands)
			if c == nil || stands.Record == nil {
				return c, err
			}
			changed := *c
			change(&changed, *stands.Record, h.now(id))
			return &changed, err
		})
	}
}

// sweepClasses go by a list that was made before.
func sweepClasses() []class {
	return []class{
		{"a requeue that does not ask for the lease", "Sweep/AgainstHeartbeat", sweeping(store.InProgress, store.Pending,
			func(c *store.Change, _ store.Record) { c.IfDue = false })},
		{"a requeue of whoever runs", "Sweep/AgainstTakeover", sweeping(store.InProgress, store.Pending,
			func(c *store.Change, now store.Record) {
				if now.State == store.InProgress {
					c.If = now.Token
				}
			})},
		{"a cancel of what was claimed meanwhile", "Sweep/AgainstClaim", sweeping(store.Pending, store.Failed,
			func(c *store.Change, now store.Record) {
				if now.State == store.InProgress {
					c.If = now.Token
				}
			})},
		{"a takeover of what has ended", "Sweep/AgainstFinish", sweeping(store.InProgress, store.InProgress,
			func(c *store.Change, now store.Record) {
				if now.State.Final() {
					c.If = now.Token
				}
			})},
		{"a doubt of what was queued again", "Sweep/Twice", sweeping(store.InProgress, store.InDoubt,
			func(c *store.Change, now store.Record) {
				if now.State == store.Pending {
					c.If = now.Token
				}
			})},
	}
}

// sweeping changes what asks for a due record in one state, to take it to
// another.
func sweeping(from, to store.State, change func(c *store.Change, now store.Record)) func(h *hooked) {
	return func(h *hooked) {
		h.changing(func(c *store.Change, now store.Record) {
			if c.IfDue && c.If.State == from && c.To.State == to {
				change(c, now)
			}
		})
	}
}
