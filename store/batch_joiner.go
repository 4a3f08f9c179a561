package store

import "context"

// BatchJoiner is a store that lets further changes join a Swap that has begun. That
// is faster if the store can work on the first changes while others arrive, and all
// of them share the cost of one commit. Joining changes come in no order, so a
// store whose transactions can deadlock should not implement it.
//
// A store that wraps another one must not be bypassed. So the engine uses the
// interface only if Self is the store itself, as with [InProcess].
type BatchJoiner interface {
	// Self returns the store itself.
	Self() Store
	// SwapJoinable is Swap of changes and of further changes that join them. Before
	// it makes them durable it calls more repeatedly until that returns none. It
	// returns the results of changes first, then of the joined changes in their
	// order. If it fails or a change is Busy, it need not call more.
	//
	// No joined change has an ID that came before, and all changes together are at
	// most MaxBatch. The times of a joined change count from a moment after more
	// returned it. SwapJoinable calls more on its own goroutine, and not after it
	// has returned.
	SwapJoinable(ctx context.Context, changes []Change, more func() []Change) ([]SwapResult, error)
}
