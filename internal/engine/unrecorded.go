package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/journal"
	"github.com/semelgo/semel/store"
)

// unrecorded holds ends that could not be recorded and retries them with the same
// token. Each has its own goroutine and backoff, so that one that fails for long,
// because its record is locked for instance, does not delay the others.
type unrecorded struct {
	emitter

	writer  *writer
	journal journal.Journal // nil: none
	limit   int             // the largest number of items
	timeout time.Duration   // of one try
	goRun   func(what string, f func())

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

func (l *unrecorded) open(c *Core) {
	l.emitter, l.writer, l.goRun = c.emitter, &c.writer, c.batching.goRun
	l.journal, l.limit, l.timeout = c.options.Journal, c.options.MaxUnrecorded, c.options.RecordTimeout
	l.retries, l.items = make(chan struct{}, unrecordedRetries), make(map[*pendingEnd]context.CancelFunc)
}

// pendingEnd is an end that is not recorded yet.
type pendingEnd struct {
	record  store.Record // the claimed record
	event   protocol.Event
	renewer renewer // renews the lease meanwhile, so that no takeover happens; nil: none
	silent  bool    // nothing was run, so no event is emitted
	// void is set for a claim that is given back: it keeps the claim from being
	// applied later, if the record has not changed since.
	void protocol.Event
	from store.Token
}

// renewer renews the lease of an attempt that has ended.
type renewer interface {
	renewAlone()
	stop()
}

func (i pendingEnd) stop() {
	if i.renewer != nil {
		i.renewer.stop()
	}
}

// reserve reserves a place for one more item, if there is one.
func (l *unrecorded) reserve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items)+l.reserved >= l.limit {
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
