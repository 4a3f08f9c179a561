package semeltest_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/semelgo/semel/store"
)

// queueClasses hand out waiting records otherwise than they should.
func queueClasses() []class {
	return []class{
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
		{"a queue of what has failed", "Queue/States", handsOutToo(store.Failed)},
		{"a queue of what runs too long", "Queue/Lease", handsOutToo(store.InProgress)},
		{"a queue that claims one more than it gives", "Queue/Limit", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				most := d.Limit
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
		{"an Expire that is left on the way out", "Queue/Expire", purgesHandedOut},
		{"a cancel of what was handed out meanwhile", "Queue/OldToken", func(h *hooked) {
			h.changingHandedOut(func(c *store.Change, now store.Record) bool {
				return c.If.State == store.Pending && c.To.State == store.Failed && now.State == store.InProgress
			})
		}},
		{"an end of what was handed out again", "Queue/Zombie", func(h *hooked) { h.changingHandedOut(isEndOutrun) }},
		{"an asking again that claims", "Queue/Again", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				rs, err := h.Store.Dequeue(ctx, d)
				if err != nil || !d.Reread || len(rs) < 2 {
					return rs, err
				}
				d.Reread = false
				more, err := h.Store.Dequeue(ctx, d)
				return append(rs, more...), err
			}
		}},
		{"an asking again that gives what it gave", "Queue/AgainEnded", func(h *hooked) {
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

// isReady says that a Pending record waits for d.
func isReady(d store.Dequeue, r store.Record) bool { return r.Operation == d.Operation && r.Due <= 0 }

// inTurn is the order that records are handed out in.
func inTurn(a, b store.Record) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Due, b.Due), slices.Compare(a.ID[:], b.ID[:]))
}

// choosing hands out those of the Pending records that which chooses.
func choosing(which func(d store.Dequeue, r store.Record) bool, order func(a, b store.Record) int) func(h *hooked) {
	return func(h *hooked) { h.claiming(which, order, func(*store.Change) {}) }
}

// claiming is likewise, with a change of each claim.
func (h *hooked) claiming(which func(d store.Dequeue, r store.Record) bool, order func(a, b store.Record) int, change func(c *store.Change)) {
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		if d.Reread || d.Limit < 1 || d.Limit > 1000 {
			return h.Store.Dequeue(ctx, d)
		}
		rs, err := h.Store.Scan(ctx, store.Query{State: store.Pending, Limit: store.MaxLimit})
		rs = slices.DeleteFunc(rs, func(r store.Record) bool { return !which(d, r) })
		slices.SortStableFunc(rs, order)
		return h.claim(d, rs[:min(d.Limit, len(rs))], change), err
	}
}

// claim claims those of the records that still stand so.
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

// handsOutToo hands out, after what waits, what stands in the state and is not
// waited for.
func handsOutToo(state store.State) func(h *hooked) {
	return func(h *hooked) {
		h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
			too, err := h.Store.Scan(ctx, store.Query{State: state, Operation: d.Operation})
			if err != nil || d.Reread || d.Limit < 1 {
				return h.Store.Dequeue(ctx, d)
			}
			too = slices.DeleteFunc(too, func(r store.Record) bool { return r.Due > 0 })
			rs, err := h.Store.Dequeue(ctx, d)
			return append(rs, h.claim(d, too, func(*store.Change) {})...), err
		}
	}
}

// handed remembers the owners that records were handed out to.
type handed struct{ owners sync.Map }

func (o *handed) is(owner uint64) bool {
	_, ok := o.owners.Load(owner)
	return ok
}

func (h *hooked) handing() *handed {
	var o handed
	h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
		o.owners.Store(d.Owner, true)
		return h.Store.Dequeue(ctx, d)
	}
	return &o
}

// changingHandedOut makes changes of claimed records, whatever their current tokens
// are.
func (h *hooked) changingHandedOut(which func(c *store.Change, now store.Record) bool) {
	o := h.handing()
	h.changing(func(c *store.Change, now store.Record) {
		if o.is(now.Owner) && which(c, now) {
			c.If = now.Token
		}
	})
}

func isEndOutrun(c *store.Change, now store.Record) bool { return isOutrun(*c, now) && !isBeat(*c) }

// purgesHandedOut keeps the Expire of what is handed out, and goes by it.
func purgesHandedOut(h *hooked) {
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
