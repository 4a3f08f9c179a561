package outbox

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// breaker tells a broker that is down from an event that cannot be published: it opens
// when two aggregates have failed and nothing was confirmed in between. While it is
// open, one message at a time is published, after a delay that grows.
type breaker struct {
	turn chan struct{} // holds a value while a message is published although the breaker is open

	mu       sync.Mutex // guards the fields below
	failed   map[aggregate]struct{}
	failures int
}

func newBreaker() breaker {
	return breaker{turn: make(chan struct{}, 1), failed: make(map[aggregate]struct{})}
}

func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.failed) > 1
}

func (b *breaker) succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.failed)
	b.failures = 0
}

func (b *breaker) failedFor(a aggregate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failed) < 2 {
		b.failed[a] = struct{}{}
	}
	b.failures++
}

func (b *breaker) delay() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return delayAfter(b.failures)
}

// enter waits until the lane may publish, and returns a function to call afterwards. It
// returns nil if the lane must end.
func (b *breaker) enter(stop context.Context, l *lane) (leave func()) {
	if !b.open() {
		return func() {}
	}
	select {
	case b.turn <- struct{}{}:
	case <-stop.Done():
		return nil
	case <-l.attempt.Context().Done():
		return nil
	}
	leave = func() { <-b.turn }
	if b.open() && !l.pause(stop, b.delay()) {
		leave()
		return nil
	}
	if !b.open() {
		leave()
		return func() {}
	}
	return leave
}

// delayAfter returns the jittered delay after n failures.
func delayAfter(n int) time.Duration {
	d := lastDelay
	if n < 8 {
		d = min(lastDelay, firstDelay<<max(0, n-1))
	}
	return d/2 + rand.N(d/2+1)
}
