package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/groupcommit"
	"github.com/semelgo/semel/store"
)

// batching combines the changes and the reads of concurrent callers into batches.
// If the store does not want batches, its queues are nil.
type batching struct {
	swaps *groupcommit.Batcher[store.ID, store.Change, store.SwapResult]
	gets  *groupcommit.Batcher[store.ID, store.ID, store.SwapResult]
	busy  busyRecords
	// swapAll swaps any number of bytes.
	swapAll swapFunc
	steps   groupcommit.Scheduler // set before open; nil outside of the explorer
}

func (l *batching) open(s store.Store, caps store.Capabilities, o *Options) {
	l.swapAll = swapPortions(s, caps.MaxBytes)
	sizes, observed := o.Observer.(event.BatchObserver)
	if observed {
		swap := l.swapAll
		l.swapAll = func(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
			sizes.ObserveBatch(ctx, len(changes))
			return swap(ctx, changes)
		}
	}
	if caps.ConcurrentSwaps == 0 {
		return
	}
	swaps := groupcommit.Config[store.ID, store.Change, store.SwapResult]{
		Flush: l.swapAll, Key: func(c *store.Change) store.ID { return c.To.ID },
		Flushers: caps.ConcurrentSwaps, ParallelAt: crowd, MaxBatch: caps.MaxBatch, MaxWaiting: o.MaxQueued, Timeout: o.RecordTimeout,
		Scheduler: l.steps,
	}
	if g, ok := s.(store.BatchJoiner); ok && g.Self() == s && caps.MaxBytes == 0 {
		swaps.FlushJoinable = g.SwapJoinable
		if observed {
			swaps.FlushJoinable = observeJoinable(sizes, g)
		}
	}
	l.swaps = groupcommit.New(swaps)
	l.gets = groupcommit.New(groupcommit.Config[store.ID, store.ID, store.SwapResult]{
		Flush: s.Get, Key: func(id *store.ID) store.ID { return *id }, Shared: true,
		Flushers: caps.ConcurrentSwaps, ParallelAt: crowd, MaxBatch: maxReads, MaxWaiting: o.MaxQueued, Timeout: o.RecordTimeout,
		Scheduler: l.steps,
	})
}

// observeJoinable returns the store's SwapJoinable, after which the observer receives the
// size of the batch with the changes that have joined it.
func observeJoinable(sizes event.BatchObserver, g store.BatchJoiner) func(context.Context, []store.Change, func() []store.Change) ([]store.SwapResult, error) {
	return func(ctx context.Context, changes []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
		n := len(changes)
		defer func() { sizes.ObserveBatch(ctx, n) }()
		return g.SwapJoinable(ctx, changes, func() []store.Change {
			joined := more()
			n += len(joined)
			return joined
		})
	}
}

// crowd is the number of waiting callers from which a second concurrent batch is
// faster, measured on PostgreSQL with two processors and 8 to 256 callers.
const crowd = 4

// maxReads is the largest batch of reads. Each record can be large.
const maxReads = 256

// goRun runs f in another goroutine.
func (l *batching) goRun(what string, f func()) {
	if l.steps != nil {
		l.steps.Go(what, f)
		return
	}
	go f()
}

// idle waits until no change is in flight, including those of callers that have
// left.
func (l *batching) idle(ctx context.Context) error {
	if l.swaps == nil {
		return nil
	}
	return errors.Join(l.swaps.Wait(ctx), l.gets.Wait(ctx))
}

// isNotSent reports whether an error occurred before anything was sent to the
// store.
func isNotSent(err error) bool {
	return errors.Is(err, groupcommit.ErrNotSent) || errors.Is(err, groupcommit.ErrFull)
}

// asAbandoned returns the error of a change whose caller left while it was in
// flight, or nil.
func asAbandoned(err error) *groupcommit.AbandonedError[store.SwapResult] {
	e, _ := errtype.Find[*groupcommit.AbandonedError[store.SwapResult]](err)
	return e
}

// busyRecords are records that another open transaction holds. They are kept out of
// batches, because the whole batch would wait for them.
type busyRecords struct {
	count atomic.Int32
	mu    sync.Mutex
	until map[store.ID]time.Time
}

const (
	// busyFor is how long a busy record is written on its own.
	busyFor = 5 * time.Second
	// maxBusy limits the number of busy records.
	maxBusy = 4096
)

func (b *busyRecords) has(id store.ID) bool {
	if b.count.Load() == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	until, ok := b.until[id]
	return ok && clock.Now().Before(until)
}

// observe notes the store's answer for a record.
func (b *busyRecords) observe(id store.ID, busy bool) {
	if !busy && b.count.Load() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if delete(b.until, id); busy {
		b.add(id)
	}
	b.count.Store(int32(len(b.until)))
}

func (b *busyRecords) add(id store.ID) {
	if len(b.until) >= maxBusy {
		for other, until := range b.until {
			if !clock.Now().Before(until) {
				delete(b.until, other)
			}
		}
	}
	if len(b.until) >= maxBusy {
		return
	}
	if b.until == nil {
		b.until = make(map[store.ID]time.Time)
	}
	b.until[id] = clock.Now().Add(busyFor)
}

// swapFunc is the Swap of a store.
type swapFunc func(ctx context.Context, changes []store.Change) ([]store.SwapResult, error)

// swapPortions returns the store's Swap. If the store limits the bytes of one Swap, the
// changes are sent in as many Swaps as the limit needs, one after another. After an
// error nothing is known about any of the changes.
func swapPortions(s store.Store, maxBytes int) swapFunc {
	if maxBytes == 0 {
		return s.Swap
	}
	return func(ctx context.Context, changes []store.Change) ([]store.SwapResult, error) {
		results := make([]store.SwapResult, 0, len(changes))
		for len(changes) > 0 {
			n := portion(changes, maxBytes)
			more, err := s.Swap(ctx, changes[:n])
			if err != nil {
				return nil, err
			}
			results, changes = append(results, more...), changes[n:]
		}
		return results, nil
	}
}

// portion returns how many of the changes have at most maxBytes together. It is at least
// one, because every change fits alone.
func portion(changes []store.Change, maxBytes int) int {
	total := changes[0].Bytes()
	for i := 1; i < len(changes); i++ {
		if total += changes[i].Bytes(); total > maxBytes {
			return i
		}
	}
	return len(changes)
}
