package storetest_test

import (
	"context"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenZombie apply writes of a leader that was taken over.
func brokenZombie() []brokenStore {
	return []brokenStore{
		{"a heartbeat whose attempt is not compared", "Zombie/Heartbeat", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if isBeat(*c) && isBySupersededOwner(*c, now) {
					c.If, c.To.Token = now.Token, now.Token
				}
			})
		}},
		{"an end whose attempt is not compared", "Zombie/Complete", letsZombiesEnd(store.Succeeded)},
		{"a release whose attempt is not compared", "Zombie/Release", letsZombiesEnd(store.Pending)},
		{"a doubt whose attempt is not compared", "Zombie/Doubt", letsZombiesEnd(store.InDoubt)},
		{"a claim that is made again by a retry", "Zombie/Claim", func(h *hooked) {
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
			h.lastChange(func(c *store.Change, current, now store.Record) {
				if isBySupersededOwner(*c, current) {
					c.If = now.Token
				}
			})
		}},
		{"a last change that goes by the first record", "ZombieTx/TakenOverInside", func(h *hooked) {
			h.lastChange(func(c *store.Change, current, now store.Record) {
				if current.Token == c.If && isBySupersededOwner(*c, now) {
					c.If = now.Token
				}
			})
		}},
		{"a zombie's write in a transaction that is made", "ZombieTx/Write", func(h *hooked) {
			h.swapTx = func(_ *memory.Tx, cs []store.Change) []store.Change {
				for i := range cs {
					if now := h.now(cs[i].To.ID); isBySupersededOwner(cs[i], now) && !isBeat(cs[i]) {
						cs[i].If = now.Token
					}
				}
				return cs
			}
		}},
	}
}

// isBySupersededOwner reports whether c belongs to an attempt that a later one has
// replaced.
func isBySupersededOwner(c store.Change, now store.Record) bool {
	return c.If.State == store.InProgress && now.State == store.InProgress &&
		now.Attempt > c.If.Attempt && c.To.Attempt == c.If.Attempt && c.To.Owner == c.If.Owner
}

func letsZombiesEnd(in store.State) func(h *hooked) {
	return func(h *hooked) {
		h.changing(func(c *store.Change, now store.Record) {
			if c.To.State == in && isBySupersededOwner(*c, now) {
				c.If = now.Token
			}
		})
	}
}

// lastChange alters the last change of a transaction, given the records at its
// beginning and at its end.
func (h *hooked) lastChange(change func(c *store.Change, current, now store.Record)) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			if c == nil || current.Record == nil {
				return c, err
			}
			changed := *c
			change(&changed, *current.Record, h.now(id))
			return &changed, err
		})
	}
}

// brokenSweep act on an outdated list.
func brokenSweep() []brokenStore {
	return []brokenStore{
		{"a requeue that does not ask for the lease", "Sweep/AgainstHeartbeat", sweeping(store.InProgress, store.Pending,
			func(c *store.Change, _ store.Record) { c.IfDue = false })},
		{"a requeue of any running record", "Sweep/AgainstTakeover", sweeping(store.InProgress, store.Pending,
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

// sweeping alters changes with IfDue that move a record from one state to another.
func sweeping(from, to store.State, change func(c *store.Change, now store.Record)) func(h *hooked) {
	return func(h *hooked) {
		h.changing(func(c *store.Change, now store.Record) {
			if c.IfDue && c.If.State == from && c.To.State == to {
				change(c, now)
			}
		})
	}
}
