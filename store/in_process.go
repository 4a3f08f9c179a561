package store

import "context"

// InProcess is a store in the memory of this process, which answers at once. It
// takes single changes and IDs instead of lists, and needs no time limit.
//
// A store that wraps another one must not be bypassed. So the engine uses the
// interface only if Self is the store itself, and not if its methods come from an
// embedded store.
type InProcess interface {
	// Self returns the store itself.
	Self() Store
	// SwapOne is Swap of one change. The store may keep the bytes of its Outcome
	// without a copy, because they are never changed. The bytes that SwapOne and
	// GetOne return must not be changed either, because they may be the store's
	// own.
	SwapOne(ctx context.Context, c Change) (SwapResult, error)
	// GetOne is Get of one ID.
	GetOne(ctx context.Context, id ID) (SwapResult, error)
}
