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
type late struct {
	retries chan struct{} // limits how many connections are taken by what failed before

	mu       sync.Mutex
	items    map[*lateItem]context.CancelFunc
	reserved int           // places for items that are about to be added
	idle     chan struct{} // closed when there are no items any more
}

const (
	// lateRetries is how many items that have failed before are tried at a time.
	lateRetries = 4

	firstLateWait = 50 * time.Millisecond
	mostLateWait  = 5 * time.Second
)

func (l *late) open() {
	l.retries, l.items = make(chan struct{}, lateRetries), make(map[*lateItem]context.CancelFunc)
}

// lateItem is one wish that is still to be recorded.
type lateItem struct {
	record store.Record // as it was claimed
	event  event
	beats  *heart // goes on beating meanwhile, so that nobody takes over
	quiet  bool   // nothing was run: nobody needs to know
	// void is, for a claim that is given back, what keeps it from coming in
	// force later, where what it was asked of still stands.
	void event
	from store.Token
}

func (i lateItem) stop() {
	if i.beats != nil {
		i.beats.stop()
	}
}

// keepLate puts an item on the list. A full list drops it: the lease then
// decides.
func (c *Core) keepLate(ctx context.Context, item lateItem, why error) {
	l := &c.late
	if c.options.Journal != nil && !item.quiet {
		if err := c.options.Journal.Keep(entryOf(item)); err != nil {
			why = fmt.Errorf("%w; journal: %w", why, err)
		}
	}
	if !l.reserve(c.options.MaxUnrecorded) {
		item.stop()
		c.seeLate(ctx, EventLateDropped, item, why)
		return
	}
	c.seeLate(ctx, EventLate, item, why) // before it can be recorded
	if item.beats != nil {
		item.beats.alone()
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.add(&item, cancel)
	c.lanes.run("record late", func() {
		defer l.remove(&item)
		c.recordInTime(run, item)
	})
}

// reserve reports whether there is room for one more item, which it then keeps.
func (l *late) reserve(most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items)+l.reserved >= most {
		return false
	}
	l.reserved++
	return true
}

// add puts an item in the place that was reserved for it.
func (l *late) add(item *lateItem, cancel context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
	if len(l.items) == 0 {
		l.idle = make(chan struct{})
	}
	l.items[item] = cancel
}

func (l *late) remove(item *lateItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items[item]()
	delete(l.items, item)
	if len(l.items) == 0 {
		close(l.idle)
	}
}

// recordInTime tries an item until it is recorded or lost, or ctx ends.
func (c *Core) recordInTime(ctx context.Context, item lateItem) {
	defer item.stop()
	if c.tryLate(ctx, item) {
		return
	}
	for wait := firstLateWait; pause(ctx, jitter(wait)) == nil; wait = min(2*wait, mostLateWait) {
		select {
		case c.late.retries <- struct{}{}:
		case <-ctx.Done():
			return
		}
		done := c.tryLate(ctx, item)
		<-c.late.retries
		if done {
			return
		}
	}
}

// tryLate reports whether the store has answered, whatever it said.
func (c *Core) tryLate(ctx context.Context, item lateItem) bool {
	ctx, cancel := context.WithTimeout(ctx, c.options.RecordTimeout)
	defer cancel()
	d, now, err := c.recordLate(ctx, item)
	if err != nil {
		return false
	}
	item.stop()
	if c.options.Journal != nil && !item.quiet {
		err = c.options.Journal.Drop(item.record.ID, item.record.Token)
	}
	switch {
	case d.say == sayTry:
		c.seeLate(ctx, EventLateRecorded, item, err)
	case item.event.step == stepSucceed && now.State != store.Succeeded:
		c.seeLate(ctx, EventConflict, item, err)
	default:
		c.seeLate(ctx, EventFenced, item, err)
	}
	return true
}

// recordLate asks for what an item is about.
func (c *Core) recordLate(ctx context.Context, item lateItem) (decision, store.Record, error) {
	if item.quiet {
		return c.giveBack(ctx, item)
	}
	return c.end(ctx, item.record, item.event)
}

// giveBack ends a claim that may have been granted although nobody heard of it. One
// that has not arrived finds another token where it was asked of; one that arrives
// while that is seen to is ended after all.
func (c *Core) giveBack(ctx context.Context, item lateItem) (decision, store.Record, error) {
	for {
		d, now, err := c.end(ctx, item.record, item.event)
		if err != nil || d.say == sayTry || now.Token != item.from || now.State.Unfinished() {
			return d, now, err
		}
		if _, now, err = c.certify(ctx, now, item.void); err != nil || now.Token != item.record.Token {
			return d, now, err
		}
	}
}

func (c *Core) seeLate(ctx context.Context, kind EventKind, item lateItem, err error) {
	if !item.quiet {
		c.see(ctx, kind, item.record, err)
	}
}

// drain waits until nothing is left to record.
func (l *late) drain(ctx context.Context) error {
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
func (l *late) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for item, cancel := range l.items {
		cancel()
		item.stop()
	}
}
