package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// brokenReads are broken in reads, times, lists and purges.
func brokenReads() []brokenStore {
	return []brokenStore{
		{"a limit of bytes that is not kept", "Batch/TooManyBytes", func(h *hooked) {
			h.caps = func(c *store.Capabilities) { c.MaxBytes = 2 * c.MaxOutcome }
		}},
		{"pages of a store without an order that repeat records", "Scan/Pages", func(h *hooked) {
			h.caps = func(c *store.Capabilities) { c.Ordered = false }
			h.scan = func(q *store.Query) {
				if q.Limit == 3 && q.After != (store.ID{}) {
					q.After[0]--
				}
			}
		}},
		{"a Get that leaves out what is absent", "Get/Absent", func(h *hooked) {
			h.get = func(ids []store.ID, as []store.SwapResult) []store.SwapResult {
				if len(ids) == 1 {
					return as
				}
				return slices.DeleteFunc(as, func(a store.SwapResult) bool { return a.Record == nil })
			}
		}},
		{"IfDue that is not looked at", "Time/IfDue", func(h *hooked) {
			h.changing(func(c *store.Change, _ store.Record) { c.IfDue = false })
		}},
		{"absolute times in answers", "Time/Relative", func(h *hooked) {
			h.answers = func(_ []store.Change, as []store.SwapResult) ([]store.SwapResult, error) {
				for i := range as {
					if r := as[i].Record; r != nil {
						r.Due += time.Duration(time.Unix(1_000_000, 0).UnixNano())
					}
				}
				return as, nil
			}
		}},
		{"a heartbeat that renews Since", "Time/HeartbeatKeepsSince", heartbeatRenewsSince},
		{"a due list that shows what is not due", "Scan/Due", func(h *hooked) {
			h.scan = func(q *store.Query) {
				if q.Due && q.State == store.Pending {
					q.Due = false
				}
			}
		}},
		{"pages that begin with the last record", "Scan/Pages", func(h *hooked) {
			h.scan = func(q *store.Query) {
				for i := len(q.After) - 1; i >= 0 && q.After != (store.ID{}); i-- {
					q.After[i]--
					if q.After[i] != 0xff {
						break
					}
				}
			}
		}},
		{"a Skip that is not looked at", "Scan/Skip", func(h *hooked) {
			h.scan = func(q *store.Query) { q.Skip = 0 }
		}},
		{"an Expire that outlives a doubt", "Purge/ExpiredBefore", purgesDoubt},
		{"a purge that stops after 500", "Purge/Many", func(h *hooked) {
			h.purge = func(ctx context.Context, limit int) (int, error) { return h.Store.Purge(ctx, min(limit, 500)) }
		}},
		{"a purge that takes InProgress", "Purge/Unfinished", purgesUnfinished},
		{"a purge before the time", "Purge/NotYet", purgesEarly},
		{"a second note for a repeated change", "Audit/Once", notesTwice},
		{"a count of all that will expire", "Counts/Purgeable", func(h *hooked) {
			h.count = func(r store.Record, c *store.Count) {
				if r.Expire > 0 {
					c.Purgeable++
				}
			}
		}},
		{"a count in which no task is overdue", "Counts/Overdue", func(h *hooked) {
			h.count = func(r store.Record, c *store.Count) {
				if r.State == store.Pending && r.Due <= 0 {
					c.Overdue--
				}
			}
		}},
		{"a count in which no failure is a dead letter", "Counts/DeadLetters", forgetsDeadLetters},
		{"an Oldest counted from the create", "Counts/Oldest", func(h *hooked) {
			h.count = func(r store.Record, c *store.Count) { c.Oldest = max(c.Oldest, r.Age) }
		}},
	}
}

func heartbeatRenewsSince(h *hooked) {
	beaten := make(map[store.ID]time.Duration) // Age at the last heartbeat
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		a, err := h.one(c)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(beaten, c.To.ID)
		if isBeat(c) && a.Applied(c) {
			beaten[c.To.ID] = h.now(c.To.ID).Age
		}
		return a, err
	}
	h.reads = func(r *store.Record) {
		if age, ok := beaten[r.ID]; ok {
			r.Since = r.Age - age
		}
	}
}

// purgesUnfinished keeps the Expire of running records and purges by it.
func purgesUnfinished(h *hooked) {
	expired := make(map[store.ID]store.Token)
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.To.State == store.InProgress && c.To.Expire < 0 {
			expired[c.To.ID] = c.To.Token
		}
		return h.one(c)
	}
	h.purge = func(ctx context.Context, limit int) (int, error) {
		n, err := h.Store.Purge(ctx, limit)
		for id, token := range expired {
			if h.now(id).Token == token {
				delete(expired, id)
				h.remove(id)
				n++
			}
		}
		return n, err
	}
}

// purgesDoubt purges InDoubt records by an earlier Expire.
func purgesDoubt(h *hooked) {
	expired := make(map[store.ID]bool)
	h.swapOne = func(c store.Change) (store.SwapResult, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.To.Expire < 0 && !c.To.State.Unfinished() {
			expired[c.To.ID] = true
		}
		return h.one(c)
	}
	h.purge = func(ctx context.Context, limit int) (int, error) {
		n, err := h.Store.Purge(ctx, limit)
		for id := range expired {
			if h.now(id).State == store.InDoubt && h.remove(id) {
				n++
			}
		}
		return n, err
	}
}

func purgesEarly(h *hooked) {
	h.purge = func(ctx context.Context, limit int) (int, error) {
		n, err := h.Store.Purge(ctx, limit)
		rs, _ := h.Store.Scan(ctx, store.Query{State: store.Succeeded})
		for _, r := range rs {
			if r.Expire > 0 {
				h.remove(r.ID)
				n++
			}
		}
		return n, err
	}
}

func notesTwice(h *hooked) {
	asked := make(map[store.Token]int)
	h.noted = func(c store.Change, _ store.Note) { asked[c.To.Token]++ }
	h.notes = func(ns []store.Note) []store.Note {
		var all []store.Note
		for _, n := range ns {
			all = append(all, slices.Repeat([]store.Note{n}, asked[n.To])...)
		}
		return all
	}
}

func forgetsDeadLetters(h *hooked) {
	h.count = func(_ store.Record, c *store.Count) {
		if c.State == store.Failed {
			c.DeadLetters = 0
		}
	}
}
