package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/cache"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
)

// New returns an engine over s.
func New[Tx any](s store.TxStore[Tx], o Options) (*Engine[Tx], error) {
	c, err := newCore(s, o, func(c *Core) { useTransactions(c, s) })
	if err != nil {
		return nil, err
	}
	return &Engine[Tx]{Core: c}, nil
}

// NewRunner returns an engine over s that uses no transactions.
func NewRunner(s store.Store, o Options) (*Core, error) {
	return newCore(s, o, func(*Core) {})
}

// newCore makes an engine over s. It calls setTx to set the functions that use
// transactions.
func newCore(s store.Store, o Options, setTx func(c *Core)) (*Core, error) {
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
	if caps.MaxBytes > 0 && caps.MaxBytes < 2*caps.MaxOutcome {
		return nil, callerr.Invalid("store", fmt.Sprintf(
			"has Capabilities.MaxBytes of %d, less than twice its MaxOutcome of %d: an input and an outcome must fit into one Swap",
			caps.MaxBytes, caps.MaxOutcome))
	}
	if err := checkSurvives(o.Survive, &caps); err != nil {
		return nil, err
	}
	c := &Core{emitter: emitter{o.Observer}, store: s, options: o, caps: caps, cache: cache.New(o.CacheBytes, o.CacheAge)}
	if c.connections = caps.Connections; c.connections == nil {
		c.connections = c
	}
	c.operations = make(map[string]*operation, len(o.Operations))
	for _, declared := range o.Operations {
		c.operations[declared.declared().name] = declared.declared()
	}
	c.empty = make(chan struct{})
	if explored, ok := s.(groupcommit.Scheduled); ok {
		c.batching.steps = explored.Scheduler()
		explored.SetAdvance(c.cache.Advance)
	}
	c.readHint.oneWriter = caps.Exclusion == store.ExcludesAll
	c.watcher, _ = s.(store.Watcher)
	c.batching.open(s, caps, &o)
	c.reader = reader{store: s, batching: &c.batching, timeout: o.RecordTimeout}
	if near, ok := s.(store.InProcess); ok && near.Self() == s {
		c.reader.inProcess = near
	}
	c.writer = writer{
		emitter: c.emitter, reader: c.reader, hint: &c.readHint, crashed: c.crashed,
	}
	c.unrecorded.open(c)
	setTx(c)
	for _, declared := range o.Operations {
		if err := c.checkTransactional(declared.declared().policy.kind); err != nil {
			return nil, err
		}
	}
	if err := c.unrecorded.restore(ctx); err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	c.survives.Store(uint32(caps.Survives))
	if caps.Survives < store.PowerLoss && o.Observer != nil { // not logged without one: the program has accepted it by name
		c.reportLoss(ctx, &caps)
	}
	return c, nil
}

// errTooLate ends the wait for a transaction that did not begin in time.
var errTooLate = errors.New("semel: the transaction did not begin in time")

// useTransactions sets the functions of c that use the transactions of s. The store
// begins a transaction, including the wait for a connection, within RecordTimeout, which
// does not limit the transaction itself.
func useTransactions[Tx any](c *Core, s store.TxStore[Tx]) {
	c.atomic = func(ctx context.Context, id store.ID, hold bool, run runFunc) (store.Verdict, error) {
		c.readHint.transactions.Add(1)
		defer c.readHint.transactions.Add(-1)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(c.options.RecordTimeout, func() { cancel(errTooLate) })
		defer late.Stop()
		begun := false
		verdict, err := s.Atomic(ctx, id, hold, func(ctx context.Context, tx Tx, st store.SwapResult) (*store.Change, error) {
			if begun = late.Stop(); !begun {
				cancel(errTooLate) // the timer's goroutine may not have run yet
				return nil, errTooLate
			}
			return run(ctx, tx, st)
		})
		if err != nil && !begun && errors.Is(context.Cause(ctx), errTooLate) {
			err = fmt.Errorf("%w, within the RecordTimeout of %v: %w", errTooLate, c.options.RecordTimeout, err)
			c.emit(ctx, event.StoreError, store.Record{ID: id}, err)
		}
		if verdict == store.Committed {
			c.readHint.observeWrite()
		}
		return verdict, err
	}
	if o, ok := s.(store.OutboxStore[Tx]); ok {
		c.outbox = o.Outbox()
	}
	c.swapTx = func(ctx context.Context, tx any, changes []store.Change) ([]store.SwapResult, error) {
		return s.SwapTx(ctx, tx.(Tx), changes)
	}
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
