package storetest_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// brokenAfterEnd let a goroutine write after the end of its transaction, as a
// connection without an open transaction does.
func brokenAfterEnd() []brokenStore {
	return []brokenStore{
		{"a transaction that goes on after its end", "LeakedGoroutine/AfterEnd", func(h *hooked) { h.writesAfterEnd = true }},
		{"writes after the commit that are applied", "LeakedGoroutine/DuringEnd", writesAfterEnd(func(c store.Change, _ store.Record, err error) bool {
			return isCreate(c) && err == nil
		})},
		{"writes after a rollback that are applied", "LeakedGoroutine/Superseded", writesAfterEnd(func(c store.Change, stands store.Record, _ error) bool {
			return isBySupersededOwner(c, stands)
		})},
		{"writes beside a failure that is kept", "LeakedGoroutine/KeptFailure", writesAfterEnd(func(_ store.Change, _ store.Record, err error) bool {
			return err != nil
		})},
	}
}

// writesAfterEnd commits separately the first two effects that are rejected because
// their transaction has ended, for transactions that end as ends selects.
func writesAfterEnd(ends func(c store.Change, stands store.Record, err error) bool) func(h *hooked) {
	return func(h *hooked) {
		var left sync.Map // how many, by transaction
		h.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
			return h.Store.Atomic(ctx, id, hold, func(ctx context.Context, tx *memory.Tx, stands store.SwapResult) (*store.Change, error) {
				c, err := run(ctx, tx, stands)
				before := store.Record{}
				if stands.Record != nil {
					before = *stands.Record
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
