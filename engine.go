package semel

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/internal/cache"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/internal/lazyctx"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/internal/timers"
	"github.com/semelgo/semel/store"
)

// Engine runs operations once over a store whose transactions are of type Tx. Its
// methods may be called concurrently. Close drains it.
type Engine[Tx any] struct {
	*Core
}

// Core is an [Engine] without the type of its transactions.
type Core struct {
	emitter

	store     store.Store
	inProcess store.InProcess // the store, if it implements InProcess
	atomic    atomicFunc
	swapTx    swapTxFunc
	options   Options
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
	clock       clock.Clock // for the engine's own durations

	inflight   inflightCalls
	timers     timers.Queue
	unrecorded unrecorded
	orphaned   orphanedClaims
	attempts

	survives atomic.Uint32 // the last store.Failure that the store reported
}

// Runner is any engine. [Do], [Begin] and adapters take it.
type Runner interface{ core() *Core }

func (c *Core) core() *Core { return c }

type (
	runFunc    func(ctx context.Context, tx any, current store.SwapResult) (*store.Change, error)
	atomicFunc func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error)
	swapTxFunc func(ctx context.Context, tx any, changes []store.Change) ([]store.SwapResult, error)
)

// New returns an engine over s. It reads the store's Capabilities once. It rejects
// a store that could let two leaders claim one attempt, or that survives less than
// [Options].Survive; the error then names the server's setting. Wrong options are a
// *FieldError. New starts no goroutine.
//
// New reads from the database, within Options.RecordTimeout. If the database is
// down or restarts meanwhile, the error is [ErrUnavailable]: call New again later.
// If the tables are missing, the error also wraps the store's own, such as
// postgres.ErrNoSchema, and another try does not help. An existing engine needs no
// restart when the database has restarted.
func New[Tx any](s store.TxStore[Tx], o Options) (*Engine[Tx], error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.RecordTimeout)
	defer cancel()
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return nil, callerr.Seal(fmt.Errorf("%w: read the store's capabilities: %w", callerr.ErrUnavailable, err))
	}
	if !caps.Linearizable {
		return nil, callerr.Invalid("store", "is not linearizable: two callers could both claim one attempt")
	}
	if err := checkSurvives(o.Survive, &caps); err != nil {
		return nil, err
	}
	c := &Core{emitter: emitter{o.Observer}, store: s, options: o, caps: caps, cache: cache.New(o.CacheBytes, o.CacheAge), clock: clock.Start()}
	if c.connections = caps.Connections; c.connections == nil {
		c.connections = c
	}
	c.operations = make(map[string]*operation, len(o.Operations))
	for _, declared := range o.Operations {
		c.operations[declared.declared().name] = declared.declared()
	}
	c.timers.Init(&c.clock)
	c.empty = make(chan struct{})
	groupcommit.RegisterAdvance(s, c.cache.Advance)
	if near, ok := any(s).(store.InProcess); ok && near.Self() == store.Store(s) {
		c.inProcess = near
	}
	c.batching.open(s, caps, &o)
	c.reader = reader{store: s, inProcess: c.inProcess, batching: &c.batching, timeout: o.RecordTimeout}
	c.writer = writer{
		emitter: c.emitter, store: s, inProcess: c.inProcess, batching: &c.batching, timeout: o.RecordTimeout,
		oneWriter: caps.SingleWriter, hint: &c.readHint, crashed: c.crashed,
	}
	c.unrecorded.open()
	c.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		c.readHint.transactions.Add(1)
		defer c.readHint.transactions.Add(-1)
		waiting, b := c.beginTimeout(ctx)
		defer b.end()
		verdict, err := s.Atomic(waiting, id, hold, func(ctx context.Context, tx Tx, st store.SwapResult) (*store.Change, error) {
			if !b.begin() {
				return nil, errTooLate
			}
			return run(ctx, tx, st)
		})
		err = b.explain(waiting, id, err)
		if verdict == store.Committed {
			c.readHint.observeWrite()
		}
		return verdict, err
	}
	c.swapTx = func(ctx context.Context, tx any, changes []store.Change) ([]store.SwapResult, error) {
		return s.SwapTx(ctx, tx.(Tx), changes)
	}
	if err := c.unrecorded.restore(ctx, c); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	c.survives.Store(uint32(caps.Survives))
	if caps.Survives < store.PowerLoss {
		c.reportLoss(ctx, &caps)
	}
	return &Engine[Tx]{Core: c}, nil
}

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

// Close refuses new calls with [ErrClosed], and waits for running attempts and for
// unrecorded outcomes. If ctx ends first, Close returns its error; outcomes that
// are still unrecorded remain in the Journal, if there is one, or are settled after
// their leases expire. Close does not close the store.
func (c *Core) Close(ctx context.Context) error {
	c.close()
	select {
	case <-c.empty:
	case <-ctx.Done():
		c.unrecorded.stop()
		return fmt.Errorf("wait for running attempts: %w", ctx.Err())
	}
	if err := c.unrecorded.drain(ctx); err != nil {
		return err
	}
	if err := c.batching.idle(ctx); err != nil {
		return fmt.Errorf("wait for the store's answers: %w", err)
	}
	return nil
}

// newOwner returns a random number that no other write of a record has. It comes
// from the operating system, because a copy of this process, from a snapshot of a
// virtual machine for instance, would repeat the numbers of a generator in the
// process.
func newOwner() uint64 {
	var b [8]byte
	for {
		_, _ = crand.Read(b[:])                                                    // never fails
		if owner := binary.LittleEndian.Uint64(b[:]); owner >= protocol.MinOwner { // MarkOwner never makes it zero
			return owner
		}
	}
}

// bounded returns a context for writes that must not end with the caller's context.
func (c *Core) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, span := lazyctx.WithDetachedTimeout(ctx, c.options.RecordTimeout)
	return ctx, span.End
}

// pause waits d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jitter returns a random duration between half of d and one and a half of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)+1))
}
