package semeltest

import (
	"context"
	"time"

	"github.com/semelgo/semel/store"
)

// Subject is a store under test, and what the suite cannot know about it.
type Subject[Tx any] struct {
	// Store is empty, and nobody else's.
	Store store.TxStore[Tx]

	// Advance moves the store's clock. A store whose clock cannot be moved
	// leaves it nil; the suite then works with leases of a few milliseconds
	// and asks the store until they are over.
	Advance func(d time.Duration)

	// Effect writes, in tx, that key had its effect once more. It must not be
	// unique or idempotent: two effects must count as two. Required when the
	// store's Capabilities say SameTx.
	Effect func(ctx context.Context, tx Tx, key string) error

	// Effects counts the effects of key that are committed.
	Effects func(key string) int
}
