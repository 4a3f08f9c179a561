// Package clock measures how long the engine's own work took, and how long it still
// waits. It is never compared with a time of another process, nor with a time in a
// caller's key.
package clock

import (
	"context"
	"math"
	"time"
)

// Now returns the current time.
func Now() time.Time { return time.Now() } //nolint:forbidigo // the only place

// Since returns the time since t. It reads the monotonic clock only, which takes
// half the time of Now.
func Since(t time.Time) time.Duration { return time.Since(t) } //nolint:forbidigo // the only place

// Until returns the time until t. Like Since it reads the monotonic clock only.
func Until(t time.Time) time.Duration { return time.Until(t) } //nolint:forbidigo // the only place

// Sleep waits d, or until ctx ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Instant is a time on a [Clock]. It takes half the time to read and a third of the
// memory of a time.Time. The zero Instant is none.
type Instant time.Duration

// Add returns the instant d later. It does not overflow.
func (i Instant) Add(d time.Duration) Instant {
	if d > 0 && i > math.MaxInt64-Instant(d) {
		return math.MaxInt64
	}
	return i + Instant(d)
}

// Clock counts from its start.
type Clock struct{ started time.Time }

// Start returns a clock that starts now.
func Start() Clock { return Clock{Now().Add(-1)} }

// Now returns the current instant.
func (c *Clock) Now() Instant { return Instant(Since(c.started)) }

// Since returns the time since i.
func (c *Clock) Since(i Instant) time.Duration { return time.Duration(c.Now() - i) }

// Until returns the time until i.
func (c *Clock) Until(i Instant) time.Duration { return time.Duration(i - c.Now()) }
