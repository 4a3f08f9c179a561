package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/semelgo/semel/store"
)

// brokenQueue dequeue the wrong records.
func brokenQueue() []brokenStore {
	return []brokenStore{
		{"a queue that goes by time first", "Queue/Priority", choosing(isReady, func(a, b store.Record) int {
			return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(b.Priority, a.Priority))
		})},
		{"a queue that is a stack", "Queue/OldestFirst", choosing(isReady, func(a, b store.Record) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Due, a.Due))
		})},
		{"a queue that does not wait", "Queue/NotDue", choosing(func(d store.Dequeue, r store.Record) bool {
			return r.Operation == d.Operation
		}, inTurn)},
		{"operations in any letter case", "Queue/Operations", choosing(func(d store.Dequeue, r store.Record) bool {
			return r.Due <= 0 && strings.EqualFold(r.Operation, d.Operation)
		}, inTurn)},
		{"a queue of what has failed", "Queue/States", dequeuesState(store.Failed)},
		{"a queue of what runs too long", "Queue/Lease", dequeuesState(store.InProgress)},
		{"a queue that claims one more than it gives", "Queue/Limit", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				most := d.Limit
				if h.hasClaims(ctx, d) {
					return h.Store.Dequeue(ctx, d)
				}
				if most == 2 {
					d.Limit++
				}
				rs, err := h.Store.Dequeue(ctx, d)
				return rs[:min(max(most, 0), len(rs))], err
			}
		}},
		{"a limit of nothing that is taken for none", "Queue/Limits", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				if d.Limit == 0 {
					return nil, nil
				}
				return h.Store.Dequeue(ctx, d)
			}
		}},
		{"a taint that is washed off on the way out", "Queue/Fields", func(h *hooked) {
			h.claiming(isReady, inTurn, func(c *store.Change) { c.To.Tainted = false })
		}},
		{"an Expire that is left on the way out", "Queue/Expire", purgesDequeued},
		{"a cancel of what was handed out meanwhile", "Queue/OldToken", func(h *hooked) {
			h.changingDequeued(func(c *store.Change, now store.Record) bool {
				return c.If.State == store.Pending && c.To.State == store.Failed && now.State == store.InProgress
			})
		}},
		{"an end of what was handed out again", "Queue/Zombie", func(h *hooked) { h.changingDequeued(isEndBySupersededOwner) }},
	}
}

// brokenRepeats dequeue the wrong records when a call is repeated.
func brokenRepeats() []brokenStore {
	return []brokenStore{
		{"a retry that claims", "Queue/Repeated", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				rs, err := h.Store.Dequeue(ctx, d)
				if err == nil && !d.Reread && len(rs) > 0 && d.Limit == 100 {
					due, _ := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true})
					rs = append(rs, h.claim(d, due, func(*store.Change) {})...)
				}
				return rs, err
			}
		}},
		{"a retry that never claims again", "Queue/RepeatedAfterEnd", func(h *hooked) {
			gave := make(map[uint64]bool)
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				d.Reread = d.Reread || gave[d.Owner] && d.Operation == "storetest"
				rs, err := h.Store.Dequeue(ctx, d)
				gave[d.Owner] = gave[d.Owner] || len(rs) > 0
				return rs, err
			}
		}},
		{"a reread that claims", "Queue/Reread", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				rs, err := h.Store.Dequeue(ctx, d)
				if err == nil && d.Reread && len(rs) > 1 {
					due, _ := h.Store.Scan(ctx, store.Query{State: store.Pending, Operation: d.Operation, Due: true})
					rs = append(rs, h.claim(d, due, func(*store.Change) {})...)
				}
				return rs, err
			}
		}},
		{"a reread that gives what was given", "Queue/RereadAfterEnd", func(h *hooked) {
			gave := make(map[uint64][]store.Record)
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				if d.Reread {
					return gave[d.Owner], nil
				}
				rs, err := h.Store.Dequeue(ctx, d)
				gave[d.Owner] = rs
				return rs, err
			}
		}},
	}
}

// isReady reports whether a Pending record waits for d.
func isReady(d store.Dequeue, r store.Record) bool { return r.Operation == d.Operation && r.Due <= 0 }

// inTurn is the order in which records are dequeued.
func inTurn(a, b store.Record) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due), slices.Compare(a.ID[:], b.ID[:]))
}

// choosing dequeues the Pending records that which selects.
func choosing(which func(d store.Dequeue, r store.Record) bool, order func(a, b store.Record) int) func(h *hooked) {
	return func(h *hooked) { h.claiming(which, order, func(*store.Change) {}) }
}

// claiming does the same, and alters each claim.
func (h *hooked) claiming(which func(d store.Dequeue, r store.Record) bool, order func(a, b store.Record) int, change func(c *store.Change)) {
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		if d.Reread || d.Limit < 1 || d.Limit > 1000 || h.hasClaims(ctx, d) {
			return h.Store.Dequeue(ctx, d)
		}
		rs, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Limit: store.MaxLimit})
		rs = slices.DeleteFunc(rs, func(r store.Record) bool { return !which(d, r) })
		slices.SortStableFunc(rs, order)
		return h.claim(d, rs[:min(d.Limit, len(rs))], change), err
	}
}

// hasClaims reports whether claims of d's Owner are current.
func (h *hooked) hasClaims(ctx context.Context, d store.Dequeue) bool {
	d.Reread = true
	rs, err := h.Store.Dequeue(ctx, d)
	return err == nil && len(rs) > 0
}

// claim claims those of the records that have not changed.
func (h *hooked) claim(d store.Dequeue, rs []store.Record, change func(c *store.Change)) []store.Record {
	var got []store.Record
	for _, r := range rs {
		c := d.Claim(r)
		c.IfDue = false
		change(&c)
		if a, err := h.one(c); err == nil && a.Applied(c) {
			got = append(got, h.now(r.ID))
		}
	}
	return got
}

// dequeuesState dequeues records in the state after the waiting ones.
func dequeuesState(state store.State) func(h *hooked) {
	return func(h *hooked) {
		h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
			too, err := h.Store.Scan(ctx, store.Query{State: state, Operation: d.Operation})
			if err != nil || d.Reread || d.Limit < 1 || h.hasClaims(ctx, d) {
				return h.Store.Dequeue(ctx, d)
			}
			too = slices.DeleteFunc(too, func(r store.Record) bool { return r.Due > 0 })
			rs, err := h.Store.Dequeue(ctx, d)
			return append(rs, h.claim(d, too, func(*store.Change) {})...), err
		}
	}
}

// ownerSet holds the owners of dequeued records.
type ownerSet struct{ owners sync.Map }

func (o *ownerSet) has(owner uint64) bool {
	_, ok := o.owners.Load(owner)
	return ok
}

func (h *hooked) recordOwners() *ownerSet {
	var o ownerSet
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		o.owners.Store(d.Owner, true)
		return h.Store.Dequeue(ctx, d)
	}
	return &o
}

// changingDequeued applies changes of dequeued records to their current tokens.
func (h *hooked) changingDequeued(which func(c *store.Change, now store.Record) bool) {
	o := h.recordOwners()
	h.changing(func(c *store.Change, now store.Record) {
		if o.has(now.Owner) && which(c, now) {
			c.If = now.Token
		}
	})
}

func isEndBySupersededOwner(c *store.Change, now store.Record) bool {
	return isBySupersededOwner(*c, now) && !isBeat(*c)
}

// purgesDequeued keeps the Expire of dequeued records and purges by it.
func purgesDequeued(h *hooked) {
	expired := make(map[store.ID]bool)
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		before, _ := h.Store.Scan(ctx, store.Query{State: store.Pending})
		for _, r := range before {
			expired[r.ID] = r.Expire < 0
		}
		return h.Store.Dequeue(ctx, d)
	}
	h.purge = func(ctx context.Context, limit int) (int, error) {
		n, err := h.Store.Purge(ctx, limit)
		for id, gone := range expired {
			if gone && h.now(id).State == store.InProgress && h.remove(id) {
				n++
			}
		}
		return n, err
	}
}
