// Package clock measures how long the engine's own work took, and how long it still
// waits. It is never compared with a time of another process, nor with a time in a
// caller's key.
package clock

import (
	"context"
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
