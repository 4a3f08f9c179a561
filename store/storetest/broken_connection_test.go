package storetest_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenConnection behave correctly until a reply is lost.
func brokenConnection() []brokenStore {
	return []brokenStore{
		// The driver repeats the statement, finds the record that it has just
		// written, and takes it for another caller's.
		{"a driver's second try that loses", "Wire/Claim", func(h *hooked) {
			h.driver = func(cs []store.Change, as []store.SwapResult) []store.SwapResult {
				if len(cs) == 1 && isCreate(cs[0]) && ofChecks(cs[0].To.ID, h) {
					now := h.now(cs[0].To.ID)
					now.Owner++
					return []store.SwapResult{{Token: now.Token, Record: &now}}
				}
				return as
			}
		}},
		{"a second try of a heartbeat that moves nothing", "Wire/Heartbeat", func(h *hooked) {
			h.driver = func(cs []store.Change, as []store.SwapResult) []store.SwapResult {
				if isBeat(cs[0]) && ofChecks(cs[0].To.ID, h) {
					return []store.SwapResult{{}}
				}
				return as
			}
		}},
		{"a second try of a batch that is answered in part", "Wire/Batch", func(h *hooked) {
			h.driver = func(cs []store.Change, as []store.SwapResult) []store.SwapResult {
				if len(cs) > 1 {
					as[len(as)-1] = store.SwapResult{}
				}
				return as
			}
		}},
		{"a retry that gives one too few", "Wire/Dequeue", func(h *hooked) {
			h.dequeue = func(ctx context.Context, d store.Dequeue) ([]store.Record, error) {
				rs, err := h.Store.Dequeue(ctx, d)
				h.mu.Lock()
				defer h.mu.Unlock()
				if d.Owner == h.lost && len(rs) > 0 {
					rs = rs[1:]
				}
				return rs, err
			}
		}},
		{"a broken commit taken for a rollback", "WireTx/CommitKept", func(h *hooked) {
			h.committed = func(id store.ID) (store.Verdict, error) {
				if h.now(id).State == store.Failed && ofChecks(id, h) {
					return store.NotCommitted, errBroken
				}
				return store.Unknown, errBroken
			}
		}},
		{"a broken batch taken for a rollback", "WireTx/AtomicBatch", func(h *hooked) { h.denies = true }},
		{"a broken commit taken for one that was made", "WireCallTx/Inline", func(h *hooked) {
			h.drops = func(c store.Change) bool { return c.To.Operation == "storetest.Inline" }
		}},
		{"an end that is confirmed and not written", "WireCall/Hold", func(h *hooked) {
			h.confirmsUnwritten("storetest.Hold", "wire", store.Succeeded)
		}},
	}
}

// ofChecks reports whether a check made the record, and not an engine.
func ofChecks(id store.ID, h *hooked) bool { return h.now(id).Operation == "storetest" }

// brokenAfterEnd let a goroutine write after the end of its transaction, as a
// connection without an open transaction does.
func brokenAfterEnd() []brokenStore {
	return []brokenStore{
		{"a transaction that goes on after its end", "LeakedGoroutine/AfterEnd", func(h *hooked) { h.writesAfterEnd = true }},
		{"writes after the commit that are applied", "LeakedGoroutine/DuringEnd", writesAfterEnd(func(c store.Change, _ store.Record, err error) bool {
			return isCreate(c) && err == nil
		})},
		{"writes after a rollback that are applied", "LeakedGoroutine/Superseded", writesAfterEnd(func(c store.Change, current store.Record, _ error) bool {
			return isBySupersededOwner(c, current)
		})},
		{"writes beside a failure that is kept", "LeakedGoroutine/KeptFailure", writesAfterEnd(func(_ store.Change, _ store.Record, err error) bool {
			return err != nil
		})},
	}
}

// writesAfterEnd commits separately the first two effects that are rejected because
// their transaction has ended, for transactions that end as ends selects.
func writesAfterEnd(ends func(c store.Change, current store.Record, err error) bool) func(h *hooked) {
	return func(h *hooked) {
		var left sync.Map // how many, by transaction
		h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
			return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, current store.SwapResult) (*store.Change, error) {
				c, err := run(ctx, tx, current)
				before := store.Record{}
				if current.Record != nil {
					before = *current.Record
				}
				if c != nil && ends(*c, before, err) {
					left.Store(tx, 2)
				}
				return c, err
			})
		}
		h.effect = func(write effectFunc) effectFunc {
			return func(ctx context.Context, tx *memory.Tx, key string) error {
				err := write(ctx, tx, key)
				n, found := left.Load(tx)
				if err == nil || !found || key == "late" {
					return err
				}
				left.Delete(tx)
				for range n.(int) {
					_, _ = h.Store.Atomic(ctx, store.ID{}, false, func(ctx context.Context, own *memory.Tx, _ store.SwapResult) (*store.Change, error) {
						return nil, write(ctx, own, key)
					})
				}
				return err
			}
		}
	}
}
