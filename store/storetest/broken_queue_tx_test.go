package storetest_test

import (
	"context"
	"errors"
	"slices"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenQueueTx behave correctly without concurrent callers.
func brokenQueueTx() []brokenStore {
	return []brokenStore{
		{"a queue that reads what is not committed", "QueueTx/Uncommitted", readsUncommitted},
		{"a queue that ignores locks", "QueueTx/Locked", choosing(isReady, inTurn)},
		{"a queue that waits for a transaction", "QueueTx/Written", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				rs, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true})
				for _, r := range rs {
					beat := store.Change{If: r.Token, To: r}
					if a, err := h.one(beat); err == nil && a.Busy {
						return nil, errors.New("lock timeout")
					}
				}
				if err != nil {
					return nil, err
				}
				return h.Store.Dequeue(ctx, d)
			}
		}},
		{"a queue that looks, then claims", "QueueRace/Once", looksThenClaims},
		{"a queue that takes what a direct call has", "QueueRace/AgainstSwap", takesBack},
		{"a queue that looks for its claims, then claims", "QueueRace/SameOwner", looksForClaims},
	}
}

func readsUncommitted(h *hooked) {
	var written []store.Record
	h.swapTx = func(_ *memory.Tx, cs []store.Change) []store.Change {
		for _, c := range cs {
			if isCreate(c) && c.To.State == store.Pending {
				written = append(written, c.To)
			}
		}
		return cs
	}
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		rs, err := h.Store.Dequeue(ctx, d)
		for _, r := range written {
			if h.now(r.ID).State == store.Absent {
				rs = append(rs, d.Claim(r).To)
			}
		}
		written = nil
		return rs, err
	}
}

// looksThenClaims claims the records that it saw as Pending, without checking
// again, if 5 or more are requested.
func looksThenClaims(h *hooked) {
	l := h.newReadCounts()
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		rs, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true, Limit: d.Limit})
		if err != nil || len(rs) == 0 || d.Limit != 5 {
			return h.Store.Dequeue(ctx, d)
		}
		l.add(rs[0].ID)
		l.awaitSecond(rs[0].ID)
		return h.seize(d, rs), nil
	}
}

// seize claims the records from their current owners.
func (h *hooked) seize(d store.Dequeue, rs []store.Record) []store.Record {
	var got []store.Record
	for _, r := range rs {
		for {
			c := d.Claim(h.now(r.ID))
			c.IfDue = false
			if a, err := h.one(c); err != nil || a.Applied(c) {
				got = append(got, h.now(r.ID))
				break
			}
		}
	}
	return got
}

// takesBack also claims records that a Swap has claimed since it read them, in a
// race of callers that request 4.
func takesBack(h *hooked) {
	o := h.recordOwners()
	dequeue := h.dequeue
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		seen, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true})
		if err != nil || d.Limit != 4 {
			return dequeue(ctx, d)
		}
		taken := func(r store.Record) bool {
			now := h.now(r.ID)
			return now.State == store.InProgress && !o.has(now.Owner)
		}
		h.race.wait(2, func() bool { return slices.ContainsFunc(seen, taken) })
		seen = slices.DeleteFunc(seen, func(r store.Record) bool { return !taken(r) })
		rs, err := dequeue(ctx, d)
		return append(rs, h.seize(d, seen)...), err
	}
}

// looksForClaims lets two calls with one Owner find no claims, and both claim.
func looksForClaims(h *hooked) {
	looks := make(map[uint64]int) // by owner; guarded by race.mu
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		if d.Reread || d.Limit != 2 || !h.race.has(8) || h.hasClaims(ctx, d) {
			return h.Store.Dequeue(ctx, d)
		}
		h.race.mu.Lock()
		looks[d.Owner]++
		h.race.changed.Broadcast()
		h.race.mu.Unlock()
		h.race.wait(2, func() bool { return looks[d.Owner] > 1 })
		due, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true, Limit: 10})
		return h.claim(d, due[:min(d.Limit, len(due))], func(*store.Change) {}), err
	}
}
