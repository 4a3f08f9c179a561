package storetest_test

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenClock use the wrong clock, or read it at the wrong time.
func brokenClock() []brokenStore {
	return []brokenStore{
		{"a reader whose clock is fast", "Clock/SingleClock", func(h *hooked) {
			h.reads = func(r *store.Record) {
				if r.State == store.InProgress {
					r.Due -= 4 * time.Minute
				}
			}
		}},
		{"a lease that is compared as it was read", "Clock/AtWrite", comparesOldReading},
		{"writes counted from the beginning of their transaction", "ClockTx/Write", func(h *hooked) {
			age := h.ages()
			h.swapTx = func(tx *memory.Tx, cs []store.Change) []store.Change {
				for i := range cs {
					cs[i].To.Due -= age(tx)
				}
				return cs
			}
		}},
		{"a lease that is compared as it was in the beginning", "ClockTx/IfDue", func(h *hooked) {
			age := h.ages()
			h.swapTx = func(tx *memory.Tx, cs []store.Change) []store.Change {
				for i := range cs {
					if cs[i].IfDue && h.now(cs[i].To.ID).Due+age(tx) > 0 {
						cs[i].If.Owner++
					}
				}
				return cs
			}
		}},
		{"a last change counted from the beginning", "ClockTx/LastChange", func(h *hooked) {
			began := h.clock()
			inner := h.Store.Atomic
			h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
				began = h.clock()
				return inner(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
					c, err := run(ctx, tx, current)
					if c == nil {
						return c, err
					}
					early := *c
					early.To.Due -= h.clock().Sub(began)
					return &early, err
				})
			}
		}},
		{"a last change that compares the lease of the beginning", "ClockTx/LastIfDue", func(h *hooked) {
			h.lastChange(func(c *store.Change, current, _ store.Record) {
				if c.IfDue && current.Due > 0 {
					c.If.Owner++
				}
			})
		}},
		{"a purge by ID of what was expired before", "PurgeTx/AgainstReclaim", func(h *hooked) {
			h.purgesAfter(func(now store.Record) bool { return now.Expire < 0 || now.State == store.InProgress })
		}},
		{"a purge of what a transaction has just ended", "PurgeTx/AgainstLastChange", func(h *hooked) {
			h.purgesAfter(func(now store.Record) bool { return now.Expire < 0 || now.State == store.Succeeded })
		}},
		{"a purge that gives up on what was busy", "PurgeTx/AgainstRollback", func(h *hooked) {
			open := h.counting()
			var busy atomic.Bool
			h.purge = func(ctx context.Context, limit int) (int, error) {
				if open.Load() > 0 {
					busy.Store(true)
				}
				if busy.Load() {
					return 0, nil
				}
				return h.Store.Purge(ctx, limit)
			}
		}},
	}
}

// comparesOldReading rejects a change with IfDue if the record was not due at its
// last read.
func comparesOldReading(h *hooked) {
	early := make(map[store.Token]bool)
	h.get = func(_ []store.ID, as []store.SwapResult) []store.SwapResult {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, a := range as {
			early[a.Token] = a.Record != nil && a.Record.Due > 0
		}
		return as
	}
	h.changing(func(c *store.Change, _ store.Record) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if c.IfDue && early[c.If] {
			c.If.Owner++
		}
	})
}

// ages returns a function for the time since a transaction began.
func (h *hooked) ages() func(tx *memory.Tx) time.Duration {
	began := make(map[*memory.Tx]time.Time)
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
			h.mu.Lock()
			began[tx] = h.clock()
			h.mu.Unlock()
			return run(ctx, tx, current)
		})
	}
	return func(tx *memory.Tx) time.Duration {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.clock().Sub(began[tx])
	}
}

// counting counts the open transactions.
func (h *hooked) counting() *atomic.Int32 {
	var open atomic.Int32
	h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		open.Add(1)
		defer func() {
			open.Add(-1)
			h.race.notify()
		}()
		return h.Store.Atomic(ctx, id, hold, run)
	}
	return &open
}

// purgesAfter lists expired records, waits until no transaction is open, and
// removes their current records by ID, where goes returns true.
func (h *hooked) purgesAfter(goes func(now store.Record) bool) {
	open := h.counting()
	h.purge = func(ctx context.Context, limit int) (int, error) {
		rs, err := h.Store.Scan(ctx, store.Query{Limit: store.MaxLimit})
		if err != nil {
			return 0, err
		}
		rs = slices.DeleteFunc(rs, func(r store.Record) bool { return r.Expire >= 0 })
		h.race.await(func() bool { return open.Load() == 0 })
		n := 0
		for _, r := range rs[:min(len(rs), limit)] {
			if goes(h.now(r.ID)) && h.remove(r.ID) {
				n++
			}
		}
		return n, nil
	}
}
