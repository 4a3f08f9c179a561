package semeltest_test

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// gathers is a store whose Swap others can join, and has no other power.
type gathers struct {
	store.TxStore[*memory.Tx]

	gather gatherFunc
}

func (g *gathers) Self() store.Store { return g }

func (g *gathers) SwapJoinable(ctx context.Context, cs []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
	return g.gather(ctx, cs, more)
}

// gatherClasses are about changes that join others.
func gatherClasses() []class {
	return []class{
		{"one who joins that is answered before the others", "Gather/Answers", func(h *hooked) {
			h.gathering(func(as [][]store.SwapResult) ([]store.SwapResult, error) {
				if len(as) > 3 {
					slices.Reverse(as)
				}
				return slices.Concat(as...), nil
			}, func(*store.Change, time.Duration) {}, 0)
		}},
		{"a batch that does not survive one who joins", "Gather/Poisoned", func(h *hooked) {
			h.gathering(func(as [][]store.SwapResult) ([]store.SwapResult, error) {
				all := slices.Concat(as...)
				if i := slices.IndexFunc(all, func(a store.SwapResult) bool { return a.Err != nil }); i >= 0 {
					return nil, all[i].Err
				}
				return all, nil
			}, func(*store.Change, time.Duration) {}, 0)
		}},
		{"a batch that asks once more than it is to", "Gather/UntilNone", func(h *hooked) {
			h.gathering(together, func(*store.Change, time.Duration) {}, 1)
		}},
		{"one who joins as if it had come with the first", "Gather/Times", func(h *hooked) {
			h.gathering(together, func(c *store.Change, late time.Duration) { c.To.Due -= late }, 0)
		}},
	}
}

func together(as [][]store.SwapResult) ([]store.SwapResult, error) { return slices.Concat(as...), nil }

// gathering makes groups one after the other, each as spoil leaves it so long after the
// first, and answers what answer makes of them. It asks again so often after none.
func (h *hooked) gathering(
	answer func(as [][]store.SwapResult) ([]store.SwapResult, error), spoil func(c *store.Change, late time.Duration), again int,
) {
	h.gather = func(ctx context.Context, cs []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
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
