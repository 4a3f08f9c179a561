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

	"github.com/semelgo/semel/internal/lane"
	"github.com/semelgo/semel/store"
)

// Engine runs operations once over a store whose transactions are of type Tx.
// It may be used by any number of goroutines. Close it to drain it.
type Engine[Tx any] struct {
	*Core
}

// Core is an [Engine] without the type of its transactions.
type Core struct {
	store     store.Store
	inProcess store.InProcess // the store, if it is one
	atomic    atomicFunc
	swapTx    swapTxFunc
	options   Options
	// operations are those of the options, by name.
	operations map[string]*operation
	caps       store.Capabilities
	// connections are what transactions of the store are begun on: its Connections, or
	// this engine itself if the store names none.
	connections any
	batching    batching
	cache       outcomeCache
	readHint    readHint
	clock       // of its own, for what it measures

	inflight   inflightCalls
	timers     timerQueue
	unrecorded unrecorded
	orphaned   orphanedClaims
	attempts

	survives atomic.Uint32 // the store.Failure that the store named when it was last asked
}

// Runner is any engine: what [Do], [Begin] and adapters take.
type Runner interface{ core() *Core }

func (c *Core) core() *Core { return c }

type (
	runFunc    func(ctx context.Context, tx any, current store.SwapResult) (*store.Change, error)
	atomicFunc func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error)
	swapTxFunc func(ctx context.Context, tx any, changes []store.Change) ([]store.SwapResult, error)
)

// New returns an engine over s. It reads the store's Capabilities once, and
// rejects a store that could let two leaders claim one attempt, or that survives
// less than [Options].Survive: the error then names the server's setting. Wrong
// options are a *FieldError. Nothing runs in the background until something needs
// to.
//
// New reads from the database, within Options.RecordTimeout. When the database is down or
// restarts while the program starts, the error is [ErrUnavailable]: call New again after a
// pause. If the tables are missing the error is also the store's own, such as
// postgres.ErrNoSchema, and another try does not help. An engine that was made before a restart of the database goes on by itself.
func New[Tx any](s store.TxStore[Tx], o Options) (*Engine[Tx], error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.RecordTimeout)
	defer cancel()
	caps, err := s.Capabilities(ctx)
	if err != nil {
		return nil, seal(fmt.Errorf("%w: read the store's capabilities: %w", ErrUnavailable, err))
	}
	if !caps.Linearizable {
		return nil, invalid("store", "is not linearizable: two callers could both claim one attempt")
	}
	if err := checkSurvives(o.Survive, &caps); err != nil {
		return nil, err
	}
	c := &Core{store: s, options: o, caps: caps, cache: newOutcomeCache(&o), clock: startClock()}
	if c.connections = caps.Connections; c.connections == nil {
		c.connections = c
	}
	c.operations = make(map[string]*operation, len(o.Operations))
	for _, declared := range o.Operations {
		c.operations[declared.declared().name] = declared.declared()
	}
	c.timers.clock, c.empty = &c.clock, make(chan struct{})
	lane.LetAge(s, c.cache.advance)
	if near, ok := any(s).(store.InProcess); ok && near.Self() == store.Store(s) {
		c.inProcess = near
	}
	c.batching.open(s, caps, &o)
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

// attempts counts what Close waits for.
type attempts struct {
	open   atomic.Int64
	closed atomic.Bool
	over   sync.Once
	empty  chan struct{} // closed once nobody is in any more, nor may enter
}

// enter is seen by close, or sees it: both write before they read.
func (a *attempts) enter() error {
	a.open.Add(1)
	if a.closed.Load() {
		a.leave()
		return ErrClosed
	}
	return nil
}

func (a *attempts) leave() {
	if a.open.Add(-1) == 0 && a.closed.Load() {
		a.over.Do(func() { close(a.empty) })
	}
}

// close lets nobody enter any more.
func (a *attempts) close() {
	a.open.Add(1) // who leaves last sees that it is closed
	a.closed.Store(true)
	a.leave()
}

// Close refuses new calls with [ErrClosed], waits for the attempts that run and
// for outcomes that are still to be recorded, and returns. When ctx ends first
// it returns ctx's error; what then is not recorded stays in the Journal, if
// there is one, and is otherwise settled after its lease. The store stays open.
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

// observe tells the Observer, if there is one.
func (c *Core) observe(ctx context.Context, e Event) {
	if c.options.Observer != nil {
		c.options.Observer.Observe(ctx, e)
	}
}

// see observes something about a record.
func (c *Core) emit(ctx context.Context, kind EventKind, r store.Record, err error) {
	if c.options.Observer != nil {
		c.observe(ctx, Event{Kind: kind, Operation: r.Operation, ID: r.ID, Attempt: r.Attempt, State: r.State, Err: err})
	}
}

// newOwner draws what no other write has: it never repeats within a record. It comes from
// the operating system, because a copy of this process, of a snapshot of its virtual
// machine for instance, has the same state and would draw the same numbers.
func newOwner() uint64 {
	var b [8]byte
	for {
		_, _ = crand.Read(b[:])                                             // never fails
		if owner := binary.LittleEndian.Uint64(b[:]); owner > atomicOwner { // ownerOf never makes it zero
			return owner
		}
	}
}

// bounded is a context for what must be recorded whatever became of the caller.
func (c *Core) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, span := withDetachedTimeout(ctx, c.options.RecordTimeout)
	return ctx, span.end
}

// pause waits d, or less when ctx ends.
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

// jitter spreads d over half to one and a half of it.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d)+1))
}
