package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// joinableStore is a store with SwapJoinable and no other optional interface.
type joinableStore struct {
	store.TxStore[*memory.Tx]

	gather joinFunc
}

func (g *joinableStore) Self() store.Store { return g }

func (g *joinableStore) SwapJoinable(ctx context.Context, cs []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
	return g.gather(ctx, cs, more)
}

// brokenJoin are broken for changes that join others.
func brokenJoin() []brokenStore {
	return []brokenStore{
		{"a change that joins that is answered before the others", "Join/Results", func(h *hooked) {
			h.joining(func(as [][]store.SwapResult) ([]store.SwapResult, error) {
				if len(as) > 3 {
					slices.Reverse(as)
				}
				return slices.Concat(as...), nil
			}, func(*store.Change, time.Duration) {}, 0)
		}},
		{"a batch that does not survive a change that joins", "Join/InvalidChange", func(h *hooked) {
			h.joining(func(as [][]store.SwapResult) ([]store.SwapResult, error) {
				all := slices.Concat(as...)
				if i := slices.IndexFunc(all, func(a store.SwapResult) bool { return a.Err != nil }); i >= 0 {
					return nil, all[i].Err
				}
				return all, nil
			}, func(*store.Change, time.Duration) {}, 0)
		}},
		{"a batch that requests one group too many", "Join/UntilEmpty", func(h *hooked) {
			h.joining(concurrently, func(*store.Change, time.Duration) {}, 1)
		}},
		{"a change that joins as if it had come with the first", "Join/Times", func(h *hooked) {
			h.joining(concurrently, func(c *store.Change, late time.Duration) { c.To.Due -= late }, 0)
		}},
	}
}

func concurrently(as [][]store.SwapResult) ([]store.SwapResult, error) {
	return slices.Concat(as...), nil
}

// joining applies groups one after another, each as spoil leaves it after its
// delay, and returns the results of answer. It requests again calls more groups
// after the last one.
func (h *hooked) joining(
	answer func(as [][]store.SwapResult) ([]store.SwapResult, error), spoil func(c *store.Change, late time.Duration), again int,
) {
	h.join = func(ctx context.Context, cs []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
		var all [][]store.SwapResult
		for began := h.clock(); ; cs = more() {
			if len(cs) == 0 {
				if again == 0 {
					return answer(all)
				}
				again--
				continue
			}
			cs = slices.Clone(cs)
			for i := range cs {
				spoil(&cs[i], h.clock().Sub(began))
			}
			as, err := h.Swap(ctx, cs)
			if err != nil {
				return nil, err
			}
			all = append(all, as)
		}
	}
}
