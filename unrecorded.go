package semel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// unrecorded holds ends that could not be recorded and retries them with the same
// token. Each has its own goroutine and backoff, so that one that fails for long,
// because its record is locked for instance, does not delay the others.
type unrecorded struct {
	retries chan struct{} // limits the connections of repeated tries

	mu       sync.Mutex
	items    map[*pendingEnd]context.CancelFunc
	reserved int           // places of items that are about to be added
	idle     chan struct{} // closed when there are no items
}

const (
	// unrecordedRetries is the number of concurrent repeated tries.
	unrecordedRetries = 4

	firstRetryWait = 50 * time.Millisecond
	maxRetryWait   = 5 * time.Second
)

func (l *unrecorded) open() {
	l.retries, l.items = make(chan struct{}, unrecordedRetries), make(map[*pendingEnd]context.CancelFunc)
}

// pendingEnd is an end that is not recorded yet.
type pendingEnd struct {
	record  store.Record // the claimed record
	event   protocol.Event
	renewer *leaseRenewer // renews the lease meanwhile, so that no takeover happens
	silent  bool          // nothing was run, so no event is emitted
	// void is set for a claim that is given back: it keeps the claim from being
	// applied later, if the record has not changed since.
	void protocol.Event
	from store.Token
}

func (i pendingEnd) stop() {
	if i.renewer != nil {
		i.renewer.stop()
	}
}

// keepUnrecorded adds an item to the list. If the list is full, the item is
// dropped, and its lease decides.
func (c *Core) keepUnrecorded(ctx context.Context, item pendingEnd, why error) {
	l := &c.unrecorded
	if c.options.Journal != nil && !item.silent {
		if err := c.options.Journal.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	if !l.reserve(c.options.MaxUnrecorded) {
		item.stop()
		c.emitPending(ctx, event.LateDropped, item, why)
		return
	}
	c.emitPending(ctx, event.Late, item, why) // before the item can be recorded
	if item.renewer != nil {
		item.renewer.renewAlone()
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.add(&item, cancel)
	c.batching.goRun("record late", func() {
		defer l.remove(&item)
		c.recordUntilDone(run, item)
	})
}

// reserve reserves a place for one more item, if there is one.
func (l *unrecorded) reserve(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items)+l.reserved >= most {
		return false
	}
	l.reserved++
	return true
}

// add puts an item in its reserved place.
func (l *unrecorded) add(item *pendingEnd, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
	if len(l.items) == 0 {
		l.idle = make(chan struct{})
	}
	l.items[item] = cancel
}

func (l *unrecorded) remove(item *pendingEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items[item]()
	delete(l.items, item)
	if len(l.items) == 0 {
		close(l.idle)
	}
}

// recordUntilDone tries an item until it is recorded or superseded, or ctx ends.
func (c *Core) recordUntilDone(ctx context.Context, item pendingEnd) {
	defer item.stop()
	if c.tryPending(ctx, item) {
		return
	}
	for wait := firstRetryWait; pause(ctx, jitter(wait)) == nil; wait = min(2*wait, maxRetryWait) {
		select {
		case c.unrecorded.retries <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := c.tryPending(ctx, item)
		<-c.unrecorded.retries
		if done {
			return
		}
	}
}

// tryPending reports whether the store has answered.
func (c *Core) tryPending(ctx context.Context, item pendingEnd) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.recordPending(ctx, item)
	if err != nil {
		return false
	}
	item.stop()
	if c.options.Journal != nil && !item.silent {
		err = c.options.Journal.Drop(item.record.ID, item.record.Token)
	}
	switch {
	case d.Answer == protocol.Apply:
		c.emitPending(ctx, event.LateRecorded, item, err)
	case protocol.Contradicts(item.event.Step, &now):
		c.emitPending(ctx, event.Conflict, item, err)
	default:
		c.emitPending(ctx, event.Fenced, item, err)
	}
	return true
}

// recordPending records the item's end.
func (c *Core) recordPending(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	if item.silent {
		return c.releaseOrVoid(ctx, item)
	}
	return c.writer.completeAlone(ctx, item.record, item.event)
}

// releaseOrVoid ends a claim that may have been applied although its reply was
// lost. If the claim has not been applied, it voids the claim; if the claim is
// applied meanwhile, it releases the claim.
func (c *Core) releaseOrVoid(ctx context.Context, item pendingEnd) (protocol.Decision, store.Record, error) {
	for {
		d, now, err := c.writer.completeAlone(ctx, item.record, item.event)
		if err != nil || d.Answer == protocol.Apply || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = c.writer.prove(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (c *Core) emitPending(ctx context.Context, kind event.Kind, item pendingEnd, err error) {
	if !item.silent {
		c.emit(ctx, kind, item.record, err)
	}
}

// drain waits until every item is recorded.
func (l *unrecorded) drain(ctx context.Context) error {
	l.mu.Lock()
	idle, left := l.idle, len(l.items)
	l.mu.Unlock()
	if left == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		l.stop()
		return fmt.Errorf("record late outcomes: %w", ctx.Err())
	}
}

// stop gives up the remaining items: the journal has them, or their leases decide.
// It ends their heartbeats at once.
func (l *unrecorded) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for item, cancel := range l.items {
		cancel()
		item.stop()
	}
}
