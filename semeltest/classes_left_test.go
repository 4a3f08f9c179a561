package semeltest_test

import (
	"context"
	"sync"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// leftBehindClasses let a goroutine write whose transaction is over, as a
// connection does on which no transaction is open any more.
func leftBehindClasses() []class {
	return []class{
		{"a transaction that goes on after its end", "LeftBehind/Afterwards", func(h *hooked) { h.loose = true }},
		{"writes after the commit that come in force", "LeftBehind/Meanwhile", goesOn(func(c store.Change, _ store.Record, err error) bool {
			return isCreate(c) && err == nil
		})},
		{"writes after a rollback that come in force", "LeftBehind/NotInForce", goesOn(func(c store.Change, stands store.Record, _ error) bool {
			return isOutrun(c, stands)
		})},
		{"writes beside a failure that is kept", "LeftBehind/Kept", goesOn(func(_ store.Change, _ store.Record, err error) bool {
			return err != nil
		})},
	}
}

// goesOn commits by themselves the first two effects that are refused because
// their transaction is over, of those that end as told.
func goesOn(ends func(c store.Change, stands store.Record, err error) bool) func(h *hooked) {
	return func(h *hooked) {
		var left sync.Map // by transaction: how many
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
