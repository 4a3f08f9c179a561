package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenRace behave correctly for single simple calls.
func brokenRace() []brokenStore {
	return []brokenStore{
		{"a create that looks, then inserts", "Race/Create", func(h *hooked) {
			h.lookThenWrite(isCreate)
		}},
		{"a claim that looks, then updates", "Race/Claim", func(h *hooked) {
			h.lookThenWrite(func(c store.Change) bool {
				return c.If.State == store.Pending && c.To.State == store.InProgress && c.IfDue
			})
		}},
		{"a requeue that looks, then updates", "Race/RequeueAgainstTakeover", func(h *hooked) {
			h.lookThenWrite(func(c store.Change) bool {
				return c.If.State == store.InProgress && c.To.State == store.Pending && c.IfDue
			})
		}},
		{"a doubt that looks, then updates", "Race/DoubtAgainstFinish", func(h *hooked) {
			h.lookThenWrite(func(c store.Change) bool {
				return c.If.State == store.InProgress && c.To.State == store.InDoubt && c.IfDue
			})
		}},
		{"a purge by a list made before", "Race/PurgeAgainstClaim", purgesByList(store.Pending)},
		{"a purge of failures by a list made before", "Race/PurgeAgainstRedrive", purgesByList(store.Failed)},
		{"a commit that looks, then writes", "RaceTx/Unlocked", commitsAfterLook},
		{"a taint that success washes off", "Model/RandomHistories", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) {
				if !isBeat(*c) && c.To.State == store.Succeeded {
					c.To.Tainted = false
				}
			})
		}},
		{"a taint that success in a transaction washes off", "ModelTx/RandomTransactions", func(h *hooked) {
			h.swapTx = func(_ *memory.Tx, cs []store.Change) []store.Change {
				for i := range cs {
					if !isBeat(cs[i]) && cs[i].To.State == store.Succeeded {
						cs[i].To.Tainted = false
					}
				}
				return cs
			}
		}},
		{"creates that fail beyond 40 at once", "LostReply/Create", smallPool},
		// A wrong answer to an engine is also a wrong answer to the checks of the
		// earlier layers, which would fail first. These stores are therefore broken
		// only for records that an engine makes.
		{"a rollback that commits", "FailingCallTx/LeasedTxErrs", rollbackCommits},
		{"a zombie's commit that is let through", "LateLeaderTx/InTx", func(h *hooked) {
			h.lastChange(func(c *store.Change, _, now store.Record) {
				if now.Operation == "storetest.InTx" && now.Key == "late leader" && isFromBefore(*c, now) {
					c.If = now.Token
				}
			})
		}},
		{"a failure that is confirmed and not written", "FailingCall/HoldFails", func(h *hooked) {
			h.confirmsUnwritten("storetest.HoldFails", "Lose", store.Failed)
		}},
		{"a zombie's end that is let through", "LateLeader/Fenced", func(h *hooked) {
			h.changing(func(c *store.Change, now store.Record) {
				if now.Operation == "storetest.Fenced" && now.Key == "late leader" && isFromBefore(*c, now) {
					c.If = now.Token
				}
			})
		}},
		{"a record that is evicted once it was replayed", "Storm/Hold", evicts},
		{"a record that is evicted once a transaction has read it", "StormTx/Inline", evictsTx},
	}
}

// isFromBefore reports whether c ends an attempt after which a later one has ended.
func isFromBefore(c store.Change, now store.Record) bool {
	return c.If.State == store.InProgress && now.State == store.Succeeded && now.Attempt > c.If.Attempt
}

// lookThenWrite overwrites the current record if the change was valid when it read
// the record. It does not change batches.
func (h *hooked) lookThenWrite(which func(store.Change) bool) {
	l := h.newReadCounts()
	h.alone = true
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		now := h.now(c.To.ID)
		if !which(c) || now.Token != c.If || c.IfDue && now.Due > 0 {
			return h.one(c)
		}
		l.add(c.To.ID)
		l.awaitSecond(c.To.ID)
		for {
			blind := c
			blind.If, blind.IfDue = h.now(c.To.ID).Token, false
			if a, err := h.one(blind); err != nil || a.Err != nil || a.Applied(blind) {
				return a, err
			}
		}
	}
}

// purgesByList removes by ID the records in the state that had expired when it read
// them.
func purgesByList(state store.State) func(h *hooked) {
	return func(h *hooked) {
		h.purge = func(ctx context.Context, limit int) (int, error) {
			rs, err := h.Store.Scan(ctx, store.Query{State: state, Limit: store.MaxLimit})
			if err != nil {
				return 0, err
			}
			rs = slices.DeleteFunc(rs, func(r store.Record) bool { return r.Expire >= 0 })
			if len(rs) < 4 {
				return h.Store.Purge(ctx, limit)
			}
			rs = rs[:min(len(rs), limit)]
			h.race.wait(5, func() bool {
				return slices.ContainsFunc(rs, func(r store.Record) bool { return h.now(r.ID).Token != r.Token })
			})
			n := 0
			for _, r := range rs {
				if h.remove(r.ID) {
					n++
				}
			}
			return n, nil
		}
	}
}

// smallPool never applies creates that arrive while 40 others are running.
func smallPool(h *hooked) {
	var open atomic.Int32
	var overflown atomic.Bool
	var refused sync.Map // by token
	full := errors.New("too many connections")
	h.alone = true
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		if !isCreate(c) || c.To.Operation != "storetest" { // callers of one engine wait for each other
			return h.one(c)
		}
		defer open.Add(-1)
		if open.Add(1) > 40 {
			refused.Store(c.To.Token, true)
			overflown.Store(true)
			h.race.notify()
			return store.SwapResult{}, full
		}
		if _, ok := refused.Load(c.To.Token); ok {
			return store.SwapResult{}, full
		}
		h.race.wait(41, overflown.Load)
		return h.one(c)
	}
}

func rollbackCommits(h *hooked) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		var failed error
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			now := h.now(id)
			if c == nil && err != nil && now.Operation == "storetest.LeasedTxErrs" && !strings.HasPrefix(now.Key, "wire") {
				failed, err = err, nil
			}
			return c, err
		})
		if failed != nil {
			return store.NotCommitted, failed
		}
		return verdict, err
	}
}

// evicts removes a Succeeded record when it is requested again.
func evicts(h *hooked) {
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		a, err := h.one(c)
		replay := isCreate(c) && a.Record != nil && a.Record.State == store.Succeeded
		if replay && c.To.Operation == "storetest.Hold" {
			h.remove(c.To.ID)
		}
		return a, err
	}
}

// confirmsUnwritten confirms changes to the state that it does not make, for the
// operation's keys with the prefix.
func (h *hooked) confirmsUnwritten(operation, prefix string, state store.State) {
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		now := h.now(c.To.ID)
		if now.Operation == operation && strings.HasPrefix(now.Key, prefix) && c.To.State == state && now.Token == c.If {
			return store.SwapResult{Token: c.To.Token}, nil
		}
		return h.one(c)
	}
}

// evictsTx removes a Succeeded record when a transaction has read it.
func evictsTx(h *hooked) {
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		evict := false
		verdict, err := h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			r := current.Record
			evict = r != nil && r.State == store.Succeeded && r.Operation == "storetest.Inline" && r.Key == "storm"
			return run(ctx, tx, current)
		})
		if evict {
			h.remove(id)
		}
		return verdict, err
	}
}

// commitsAfterLook applies the last change, a create, over any current record.
func commitsAfterLook(h *hooked) {
	l := h.newReadCounts()
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			c, err := run(ctx, tx, current)
			if c == nil || err != nil || hold || !isCreate(*c) || current.Token != (store.Token{}) {
				return c, err
			}
			blind := *c
			switch l.add(id) {
			case 1:
				l.awaitSecond(id)
			case 2:
				h.race.wait(2, func() bool { return h.now(id).State != store.Absent })
				blind.If = h.now(id).Token
			}
			return &blind, nil
		})
	}
}
