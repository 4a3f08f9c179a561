package store

import "context"

// InProcess is a store that answers at once, because it is in this very process. One
// change or one ID is asked for without lists of them, and needs no bound.
//
// A store that wraps another and is to see all that is asked of it must not be
// passed by: so it is used only when Self is that very store, and not when its
// methods come from one that is embedded.
type InProcess interface {
	// Self returns the store itself.
	Self() Store
	// SwapOne is Swap of one change. The store may keep the bytes of its Outcome
	// without a copy: nobody writes over them any more. So are those it gives not to
	// be written over, by either of these: the store may have no others.
	SwapOne(ctx context.Context, c Change) (SwapResult, error)
	// GetOne is Get of one ID.
	GetOne(ctx context.Context, id ID) (SwapResult, error)
}
