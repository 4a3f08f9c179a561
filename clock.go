package semel

import (
	"math"
	"time"
)

// The engine's own clock measures how long something of its own took, or how
// long it still waits. It is compared with nothing that another process wrote,
// and never with the time that a caller put into a key: that is Options.Clock.

func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// since and until read the monotonic clock alone, which takes half the time.

func since(t time.Time) time.Duration { return time.Since(t) } //nolint:forbidigo // see above

func until(t time.Time) time.Duration { return time.Until(t) } //nolint:forbidigo // see above

// instant is a time on an engine's own clock, which is read in half the time and kept
// in a third of the room of a time.Time. The zero instant is none.
type instant time.Duration

// add is never past the last instant there is.
func (i instant) add(d time.Duration) instant {
	if d > 0 && i > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return i + instant(d)
}

// clock counts from when it was started, and is never read before.
type clock struct{ started time.Time }

func startClock() clock { return clock{now().Add(-1)} }

func (c *clock) now() instant { return instant(since(c.started)) }

func (c *clock) since(i instant) time.Duration { return time.Duration(c.now() - i) }

func (c *clock) until(i instant) time.Duration { return time.Duration(i - c.now()) }
