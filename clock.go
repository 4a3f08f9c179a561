package semel

import "time"

// The engine's own clock measures how long something of its own took, or how
// long it still waits. It is compared with nothing that another process wrote,
// and never with the time that a caller put into a key: that is Options.Clock.

func now() time.Time { return time.Now() } //nolint:forbidigo // see above

// since and until read the monotonic clock alone, which takes half the time.

func since(t time.Time) time.Duration { return time.Since(t) } //nolint:forbidigo // see above

func until(t time.Time) time.Duration { return time.Until(t) } //nolint:forbidigo // see above
