package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Errors of requests that were never sent. Such a request has no effect.
var (
	// ErrFull rejects a request because MaxWaiting requests are waiting.
	ErrFull = errors.New("too many waiting requests")
	// ErrNotSent reports that a request was withdrawn before a batch took it.
	ErrNotSent = errors.New("not sent")
)

// Config configures a [Batcher].
type Config[K comparable, Req, Res any] struct {
	// Flush sends one batch and returns the results in the order of the requests.
	// Without an error it must return one result for each request. Flush owns the
	// slice until it returns; after an error it owns the slice for good.
	Flush func(ctx context.Context, requests []Req) ([]Res, error)
	// FlushJoinable, if set, is a Flush whose batch other requests may join. It
	// calls more until more returns no requests. The results of the joined requests
	// follow the results of the first ones. FlushJoinable must not call more after
	// it has returned. It cannot be combined with Shared.
	FlushJoinable func(ctx context.Context, requests []Req, more func() []Req) ([]Res, error)
	// Key returns the key of a request.
	Key func(r *Req) K
	// Shared lets requests of one key share one place in a batch and its result.
	// Otherwise such requests go into successive batches.
	Shared bool
	// Flushers is the maximum number of running batches, MaxBatch the maximum size
	// of a batch, and MaxWaiting the maximum number of waiting requests.
	Flushers, MaxBatch, MaxWaiting int
	// ParallelAt is the number of waiting requests at which another batch starts
	// beside the running ones. With fewer, the shorter wait is worth less than what
	// the database loses through small batches.
	ParallelAt int
	// Timeout limits the time from a request to its result, including the wait. The
	// deadline of a batch is the deadline of its oldest request.
	Timeout time.Duration
	// Scheduler, if set, decides when goroutines run.
	Scheduler Scheduler
}

// Batcher combines requests into batches. It is safe for concurrent use.
type Batcher[K comparable, Req, Res any] struct {
	config Config[K, Req, Res]

	mu       sync.Mutex
	waiting  []*Item[Req, Res]
	inflight map[K]struct{} // keys of the running batches, unless Shared
	running  int            // batches that run or are about to run
	pending  int            // items that wait or are in a running batch
	idle     chan struct{}  // closed when pending is zero; nil without a waiter
	timer    *time.Timer    // fires at the deadline of the oldest waiting item
	timerSet bool
}

// New returns a batcher.
func New[K comparable, Req, Res any](c Config[K, Req, Res]) *Batcher[K, Req, Res] {
	return &Batcher[K, Req, Res]{config: c, inflight: make(map[K]struct{})}
}

// Item is one request and, later, its result.
type Item[Req, Res any] struct {
	request  Req
	deadline time.Time
	taken    bool          // a batch contains the item, or it has expired
	done     chan struct{} // closed when the item is settled

	result Res
	err    error
}

// Settled reports whether the item has a result or an error.
func (it *Item[Req, Res]) Settled() bool {
	select {
	case <-it.done:
		return true
	default:
		return false
	}
}

// Enqueue adds a request. With force it ignores MaxWaiting. If single is not nil, it
// is a batch of this request only, and the caller must flush and settle it. If start
// is true, the caller must have Take called, and the batches flushed that it returns.
func (g *Batcher[K, Req, Res]) Enqueue(r Req, force bool) (it *Item[Req, Res], single *Batch[Req, Res], start bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) >= g.config.MaxWaiting && !force {
		return nil, nil, false, ErrFull
	}
	deadline := time.Now().Add(g.config.Timeout) //nolint:forbidigo // not compared with the store's times
	it = &Item[Req, Res]{request: r, deadline: deadline, done: make(chan struct{})}
	g.pending++
	if start = g.mayStart(); start {
		g.running++
	}
	if start && len(g.waiting) == 0 && g.acquireKey(it) {
		it.taken = true
		return it, &Batch[Req, Res]{Requests: []Req{r}, items: []*Item[Req, Res]{it}, deadline: deadline}, false, nil
	}
	g.waiting = append(g.waiting, it)
	g.setTimer(deadline)
	return it, nil, start, nil
}

// mayStart reports whether another batch may start now.
func (g *Batcher[K, Req, Res]) mayStart() bool {
	return g.running == 0 || g.running < g.config.Flushers && len(g.waiting)+1 >= g.config.ParallelAt
}

// Withdraw removes an item that no batch has taken. It reports whether it did so;
// then the request has no effect.
func (g *Batcher[K, Req, Res]) Withdraw(it *Item[Req, Res]) (unsent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if it.taken {
		return false
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *Item[Req, Res]) bool { return other == it })
	g.removePending(1)
	return true
}

// removePending subtracts n items from pending and reports an idle batcher.
func (g *Batcher[K, Req, Res]) removePending(n int) {
	if g.pending -= n; g.pending == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}
