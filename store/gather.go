package store

import "context"

// BatchJoiner is a store that lets more changes join a Swap that it has begun. That pays
// where the first of them are worked on while others are still to come, and all of them
// share what a commit costs. What joins is in no order, so a store whose transactions
// can wait for each other in a circle should not be one.
//
// A store that wraps another and is to see all that is asked of it must not be passed
// by: so it is used only when Self is that very store, as with [InProcess].
type BatchJoiner interface {
	// Self returns the store itself.
	Self() Store
	// SwapJoinable is Swap of changes and of those that join them. Before it makes
	// them durable it calls more, again and again until that returns none, and answers
	// first changes and then the others, in the order in which they came. When it
	// fails, or answers Busy, it may not have called more.
	//
	// None of those that join is of an ID that came before, and all together are no more
	// than MaxBatch. A time of theirs counts from a now that is not before more returned
	// them. It calls more on its own goroutine, and not any more once it has returned.
	SwapJoinable(ctx context.Context, changes []Change, more func() []Change) ([]SwapResult, error)
}
