package storetest

import (
	"context"
	"time"

	"github.com/semelgo/semel/store"
)

// StoreSubject is a store under test, and what the suite cannot know about it.
type StoreSubject struct {
	// Store is empty, and not shared with other tests.
	Store store.Store

	// Advance moves the store's clock. A store whose clock cannot be moved
	// leaves it nil; the suite then works with leases of a few milliseconds
	// and asks the store until they are over.
	Advance func(d time.Duration)

	// Lose arms the connection between Store and its database to lose one
	// reply: that to the next request after which something of the records is
	// durable, which is that of a Swap, a SwapNoted, a Dequeue, a Purge or an
	// AtomicBatch, or the commit of an Atomic. The database has applied the request by then,
	// and the client sees the connection break, or hears nothing more. The
	// automatic retries of the driver stay enabled.
	// Effect's own requests, reads and the begin of a transaction lose nothing.
	//
	// The function it returns reports whether a reply was lost, and disarms
	// the connection if none was. The suite arms it once at a time.
	//
	// Nil says that there is no connection, as with a store within this
	// process; the checks that need one are then skipped.
	Lose func() (lost func() bool)

	// Isolate disconnects what a change of Store needs for its confirmation: the
	// replicas of a store that survives a failover, or the disk of one that survives a
	// power loss. Until the function it returns is called, no change is confirmed; that
	// function may be called twice.
	//
	// Nil says that the test cannot do that; the checks that need it are then skipped.
	Isolate func() (restore func())

	// callers is called with the number of concurrent callers that a check starts,
	// and with -1 when one of them ends. The tests of this package set it, because a
	// broken store can only tell so whether it still takes part in a race.
	callers func(n int)
}

// Subject is a store with transactions under test, and what the suite cannot know
// about it.
type Subject[Tx any] struct {
	// Store, Advance, Lose and Isolate are as in [StoreSubject].
	Store   store.TxStore[Tx]
	Advance func(d time.Duration)
	Lose    func() (lost func() bool)
	Isolate func() (restore func())

	// Effect writes, in tx, that key had its effect once more. It must not be
	// unique or idempotent: two effects must count as two. It returns the
	// error of a transaction that has ended, and is called from goroutines that
	// a handler has left behind.
	Effect func(ctx context.Context, tx Tx, key string) error

	// Effects counts the effects of key that are committed.
	Effects func(key string) int

	// Begin has a function for each isolation level at which a program may begin a
	// transaction of its own for SwapTx, by the level's name. Empty: only Atomic
	// begins transactions of the store.
	Begin map[string]BeginFunc[Tx]

	// Batches hands statements over all together, for a store that is a
	// store.Batcher: see BatchesOf. Required then.
	Batches *Batches[Tx]

	callers func(n int) // as in StoreSubject
}

// BeginFunc begins a transaction. The suite calls commit or rollback once.
type BeginFunc[Tx any] func(ctx context.Context) (tx Tx, commit, rollback func() error, err error)

// plain returns the part of the subject that needs no transactions.
func (s *Subject[Tx]) plain() StoreSubject {
	return StoreSubject{Store: s.Store, Advance: s.Advance, Lose: s.Lose, Isolate: s.Isolate, callers: s.callers}
}
