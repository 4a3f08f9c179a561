package semel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// late holds what could not be recorded and tries it again, with the same token. Each item
// has its own goroutine and its own pauses, so that an item that cannot be recorded, whose
// record is locked for instance, does not delay the others.
type unrecorded struct {
	retries chan struct{} // limits how many connections are taken by what failed before

	mu       sync.Mutex
	items    map[*pendingEnd]context.CancelFunc
	reserved int           // places for items that are about to be added
	idle     chan struct{} // closed when there are no items any more
}

const (
	// lateRetries is how many items that have failed before are tried at a time.
	unrecordedRetries = 4

	firstRetryWait = 50 * time.Millisecond
	maxRetryWait   = 5 * time.Second
)

func (l *unrecorded) open() {
	l.retries, l.items = make(chan struct{}, unrecordedRetries), make(map[*pendingEnd]context.CancelFunc)
}

// lateItem is one wish that is still to be recorded.
type pendingEnd struct {
	record  store.Record // as it was claimed
	event   event
	renewer *leaseRenewer // goes on beating meanwhile, so that nobody takes over
	silent  bool          // nothing was run: nobody needs to know
	// void is, for a claim that is given back, what keeps it from coming in
	// force later, where what it was asked of still stands.
	void event
	from store.Token
}

func (i pendingEnd) stop() {
	if i.renewer != nil {
		i.renewer.stop()
	}
}

// keepLate puts an item on the list. A full list drops it: the lease then
// decides.
func (c *Core) keepUnrecorded(ctx context.Context, item pendingEnd, why error) {
	l := &c.unrecorded
	if c.options.Journal != nil && !item.silent {
		if err := c.options.Journal.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	if !l.reserve(c.options.MaxUnrecorded) {
		item.stop()
		c.emitPending(ctx, EventLateDropped, item, why)
		return
	}
	c.emitPending(ctx, EventLate, item, why) // before it can be recorded
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

// reserve reports whether there is room for one more item, which it then keeps.
func (l *unrecorded) reserve(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items)+l.reserved >= most {
		return false
	}
	l.reserved++
	return true
}

// add puts an item in the place that was reserved for it.
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

// recordInTime tries an item until it is recorded or lost, or ctx ends.
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

// tryLate reports whether the store has answered, whatever it said.
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
	case d.answer == answerApply:
		c.emitPending(ctx, EventLateRecorded, item, err)
	case item.event.step == stepSucceed && now.State != store.Succeeded:
		c.emitPending(ctx, EventConflict, item, err)
	default:
		c.emitPending(ctx, EventFenced, item, err)
	}
	return true
}

// recordLate asks for what an item is about.
func (c *Core) recordPending(ctx context.Context, item pendingEnd) (decision, store.Record, error) {
	if item.silent {
		return c.releaseOrVoid(ctx, item)
	}
	return c.completeAlone(ctx, item.record, item.event)
}

// giveBack ends a claim that may have been granted although nobody heard of it. One
// that has not arrived finds another token where it was asked of; one that arrives
// while that is seen to is ended after all.
func (c *Core) releaseOrVoid(ctx context.Context, item pendingEnd) (decision, store.Record, error) {
	for {
		d, now, err := c.completeAlone(ctx, item.record, item.event)
		if err != nil || d.answer == answerApply || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = c.prove(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (c *Core) emitPending(ctx context.Context, kind EventKind, item pendingEnd, err error) {
	if !item.silent {
		c.emit(ctx, kind, item.record, err)
	}
}

// drain waits until nothing is left to record.
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

// stop gives up what is left: the journal has it, or the lease decides. The heartbeats of
// the items end at once.
func (l *unrecorded) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for item, cancel := range l.items {
		cancel()
		item.stop()
	}
}
