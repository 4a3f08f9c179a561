package engine

import (
	"context"

	"github.com/semelgo/semel/store"
)

// swapFunc is the Swap of a store.
type swapFunc func(ctx context.Context, changes []store.Change) ([]store.SwapResult, error)

// swapPortions returns the store's Swap. If the store limits the bytes of one Swap, the
// changes are sent in as many Swaps as the limit needs, one after another. After an
// error nothing is known about any of the changes.
func swapPortions(s store.Store, maxBytes int) swapFunc {
	if maxBytes == 0 {
		return s.Swap
	}
	return func(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
		results := make([]store.SwapResult, 0, len(changes))
		for len(changes) > 0 {
			n := portion(changes, maxBytes)
			more, err := s.Swap(ctx, changes[:n])
			if err != nil {
				return nil, err
			}
			results, changes = append(results, more...), changes[n:]
		}
		return results, nil
	}
}

// portion returns how many of the changes have at most maxBytes together. It is at least
// one, because every change fits alone.
func portion(changes []store.Change, maxBytes int) int {
	total := changes[0].Bytes()
	for i := 1; i < len(changes); i++ {
		if total += changes[i].Bytes(); total > maxBytes {
			return i
		}
	}
	return len(changes)
}
