package semel

import "time"

// The engine's own clock measures how long something of its own took, or how
// long it still waits. It is compared with nothing that another process wrote,
// and never with the time that a caller put into a key: that is Options.Clock.

func now() time.Time { return time.Now() } //nolint:forbidigo // see above

func since(t time.Time) time.Duration { return now().Sub(t) }

func until(t time.Time) time.Duration { return t.Sub(now()) }
