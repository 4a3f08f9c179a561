package bus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Pauses between connections.
const (
	minPause = 50 * time.Millisecond
	maxPause = 5 * time.Second
)

// reconnect runs a connection again and again until ctx ends, with a pause that
// grows with each failure in a row. run reports whether it was connected.
func reconnect(ctx context.Context, run func() (connected bool, err error)) error {
	pause := minPause
	for {
		connected, _ := run()
		if connected {
			pause = minPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, maxPause)
	}
}

// connectionLock is held by the one caller that uses or opens the connection for publishing. While the
// broker is unreachable, one caller tries to connect from time to time, and the others fail at once. Otherwise
// each of them would wait for a timeout, one after the other.
type connectionLock struct {
	held   chan struct{} // holds a value while the lock is held
	failed error         // of the last attempt to connect; nil: it succeeded
	pause  time.Duration
	until  time.Time // no further attempt before
}

func newConnectionLock() connectionLock { return connectionLock{held: make(chan struct{}, 1)} }

// take waits for the lock, or for the end of ctx.
func (c *connectionLock) take(ctx context.Context) error {
	select {
	case c.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the connection: %w", context.Cause(ctx))
	}
}

func (c *connectionLock) release() { <-c.held }

// connect calls dial, or returns its last error if that is recent. The caller holds the lock.
func (c *connectionLock) connect(dial func() error) error {
	if c.failed != nil && time.Now().Before(c.until) {
		return c.failed
	}
	if c.failed = dial(); c.failed == nil {
		c.pause = 0
		return nil
	}
	c.pause = min(max(minPause, 2*c.pause), maxPause)
	c.until = time.Now().Add(c.pause)
	return c.failed
}
