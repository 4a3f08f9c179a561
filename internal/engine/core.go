package engine

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/cache"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/timers"
	"github.com/semelgo/semel/store"
)

// Engine runs operations once over a store whose transactions are of type Tx.
type Engine[Tx any] struct {
	*Core
}

// Core is an [Engine] without the type of its transactions.
type Core struct {
	emitter

	store   store.Store
	watcher store.Watcher // the store, if it implements Watcher
	// atomic and swapTx use the store's transactions. Like outbox they are nil in an
	// engine of NewRunner.
	atomic  atomicFunc
	swapTx  swapTxFunc
	outbox  store.OutboxReader // nil: none
	options Options
	// operations has the operations of the options, by name.
	operations map[string]*operation
	caps       store.Capabilities
	// connections identifies the connections of the store's transactions: its
	// Connections, or this engine if the store names none.
	connections any
	batching    batching
	reader      reader
	writer      writer
	cache       cache.Cache
	readHint    readHint

	inflight   inflightCalls
	timers     timers.Queue
	unrecorded unrecorded
	orphaned   orphanedClaims
	attempts

	survives atomic.Uint32 // the last store.Failure that the store reported
}

// Runner is any engine, with or without transactions.
type Runner interface {
	// Close refuses new calls and waits for running ones: see the method of Engine.
	Close(ctx context.Context) error
	core() *Core
}

func (c *Core) core() *Core { return c }

type (
	runFunc    func(ctx context.Context, tx any, current store.SwapResult) (*store.Change, error)
	atomicFunc func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error)
	swapTxFunc func(ctx context.Context, tx any, changes []store.Change) ([]store.SwapResult, error)
)

// attempts counts the running calls, for which Close waits.
type attempts struct {
	open   atomic.Int64
	closed atomic.Bool
	over   sync.Once
	empty  chan struct{} // closed after Close, when no call is running
}

// enter and close both write before they read, so that one of them sees the other.
func (a *attempts) enter() error {
	a.open.Add(1)
	if a.closed.Load() {
		a.leave()
		return callerr.ErrClosed
	}
	return nil
}

func (a *attempts) leave() {
	if a.open.Add(-1) == 0 && a.closed.Load() {
		a.over.Do(func() { close(a.empty) })
	}
}

// close refuses further calls.
func (a *attempts) close() {
	a.open.Add(1) // the last leave closes empty
	a.closed.Store(true)
	a.leave()
}

// bounded returns a context for writes that must not end with the caller's context.
func (c *Core) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.options.RecordTimeout)
}

// ownsKey reports whether the system, and not a caller, chose the record's key.
func (c *Core) ownsKey(r store.Record) bool {
	op := c.operations[r.Operation]
	return op != nil && op.retry != nil
}

// checkOperation returns an error if the options of the engine exclude the operation, or
// if the engine was given another one of the same name. Records refer to operations by
// name, so one operation would answer for the other.
func (c *Core) checkOperation(op *operation) error {
	if given := c.operations[op.name]; given != nil && given != op {
		return callerr.Invalid("Operations", "of the engine have another definition of "+op.name+": define an operation once and use that definition")
	}
	return c.options.outlived(op)
}

// checkTransactional rejects the policy Atomic for an engine without transactions.
func (c *Core) checkTransactional(policy protocol.Policy) error {
	if policy.Transactional() && c.atomic == nil {
		return callerr.Invalid("Policy", "is Atomic, which needs a store with transactions and an engine of New")
	}
	return nil
}

// retention returns how long a final record is kept: as its operation says, if the
// engine was given it, else as the record says.
func (c *Core) retention(r store.Record) time.Duration {
	if op := c.operations[r.Operation]; op != nil {
		return c.options.timesOf(op, r.ID).Retention
	}
	p, _ := codec.ProgressOf(r)
	return cmp.Or(p.Retention, c.options.Retention)
}

// CoreOf returns the engine of a runner.
func CoreOf(e Runner) *Core { return e.core() }
