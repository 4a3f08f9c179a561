package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Do sends one request in a batch with the requests of other callers and returns its
// result. If Flush fails, every caller of the batch receives its error. If ctx ends
// first, the error wraps the error of ctx: it wraps [ErrNotSent] too if the request
// was not sent, and is an *[AbandonedError] otherwise. With force, Do ignores
// MaxWaiting.
func (g *Batcher[K, Req, Res]) Do(ctx context.Context, r Req, force bool) (result Res, err error) {
	it, single, start, err := g.Enqueue(r, force)
	switch {
	case err != nil:
		return result, err
	case single != nil && g.flushBatch(ctx, single), start:
		g.spawn(g.flushAll)
	}
	switch {
	case g.wait(ctx, it):
		return it.result, it.err
	case g.Withdraw(it):
		return result, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	default:
		return result, &AbandonedError[Res]{cause: ctx.Err(), wait: func() (Res, error) { //nolint:contextcheck // the caller's context has ended
			g.wait(context.Background(), it)
			return it.result, it.err
		}}
	}
}

// AbandonedError is returned when a caller stops waiting while its request is being
// sent. The result arrives later.
type AbandonedError[Res any] struct {
	cause error
	wait  func() (Res, error)
}

// Error describes why the caller stopped waiting.
func (e *AbandonedError[Res]) Error() string { return "abandoned in flight: " + e.cause.Error() }

// Unwrap returns the error of the caller's context.
func (e *AbandonedError[Res]) Unwrap() error { return e.cause }

// Wait waits for the result and returns it.
func (e *AbandonedError[Res]) Wait() (Res, error) { return e.wait() }

// flushAll flushes batches until no request waits.
func (g *Batcher[K, Req, Res]) flushAll() {
	expected := minBatch
	for more := true; more; {
		enough := expected
		if g.config.FlushJoinable != nil {
			enough = minBatch // later requests can join the batch
		}
		idle := g.yieldForMore(enough)
		b := g.Take()
		if b == nil {
			return
		}
		if g.config.FlushJoinable != nil && idle {
			b.joinLimit = min(expected, g.config.MaxBatch)
		}
		more = g.flushBatch(context.Background(), b)
		expected = max(minBatch, g.expectedSize(len(b.items)))
	}
}

const (
	// minBatch is a batch size below which yielding the processor always pays.
	minBatch = 4
	// maxIdleYields is the number of successive yields without a new request. They
	// take some microseconds, in which goroutines on other processors can enqueue.
	maxIdleYields = 50
	// maxYield is the time without a new request after which yielding stops. A yield
	// takes tens of milliseconds if the processors have other work.
	maxYield = 100 * time.Microsecond
)

// yieldForMore yields the processor until enough requests wait or no more arrive.
// Callers whose last request was just settled often send another one, and a batch
// costs little more than a single request. It is not a linger time: other goroutines
// run meanwhile. The result is false if a yield without a new request took longer
// than maxYield: then the processors have other work.
func (g *Batcher[K, Req, Res]) yieldForMore(enough int) bool {
	if g.config.Scheduler != nil {
		return true
	}
	count, last := g.countWaiting(), time.Now() //nolint:forbidigo // not compared with the store's times
	for idle := 0; count < enough && idle < maxIdleYields; idle++ {
		runtime.Gosched()
		switch now := g.countWaiting(); {
		case now > count:
			count, idle, last = now, -1, time.Now() //nolint:forbidigo // as above
		case time.Since(last) > maxYield: //nolint:forbidigo // as above
			return false
		}
	}
	return true
}

// expectedSize estimates the size of the next batch: the callers of the settled
// items send another request, and the running batches get equal shares.
func (g *Batcher[K, Req, Res]) expectedSize(settled int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return (settled + g.pending) / max(g.running, 1)
}

// countWaiting returns the number of waiting requests.
func (g *Batcher[K, Req, Res]) countWaiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

var errNoReturn = errors.New("groupcommit: Flush did not return")

// flushBatch flushes a batch and reports whether the caller must flush another one.
// If Flush panics, every request of the batch fails. The callers retry alone, which
// shows whose request caused the panic.
func (g *Batcher[K, Req, Res]) flushBatch(ctx context.Context, b *Batch[Req, Res]) (more bool) {
	results, err := []Res(nil), errNoReturn
	returned := false
	defer func() {
		if p := recover(); p != nil {
			err, returned = fmt.Errorf("groupcommit: Flush panicked: %v", p), true
		}
		if more = g.Settle(b, results, err); more && !returned {
			g.spawn(g.flushAll) // Goexit ends this goroutine, so another one must go on
		}
	}()
	ctx, cancel := context.WithDeadline(ctx, b.deadline)
	defer cancel()
	if b.joinLimit > len(b.items) {
		results, err = g.config.FlushJoinable(ctx, b.Requests, func() []Req { return g.join(b) })
	} else {
		results, err = g.config.Flush(ctx, b.Requests)
	}
	returned = true
	return more
}

// Wait waits until no request is pending, or until ctx ends.
func (g *Batcher[K, Req, Res]) Wait(ctx context.Context) error {
	g.mu.Lock()
	if g.pending == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
