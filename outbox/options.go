package outbox

import (
	"context"
	"time"
)

// Options configure a [Relay]. The zero value has good defaults.
type Options struct {
	// Poll is the interval at which the relay looks for events of other processes, and
	// of transactions without a [Kick]. It is jittered: each wait is between half and one
	// and a half of it. A poll is two small queries, however many lanes are idle. Zero:
	// 1 second.
	Poll time.Duration
	// Batch is the largest number of events that are read, and removed, at once. After a
	// crash up to that many events of a lane are published again. Zero: 100.
	Batch int
	// Timeout limits one call of the Publisher. Zero: 10 seconds.
	Timeout time.Duration
	// MaxFailures is how often an event may fail: with the next failure its aggregate is
	// parked. The first failure counts unless the broker seems to be down. A later one
	// counts if the broker has confirmed another event of this process since the failure
	// before it, or since the relay began if another process saw that failure. The count
	// is stored with the event when it changes. Zero: 10.
	MaxFailures int
	// Lease is how long a relay keeps its lanes after its last renewal. Zero: the
	// engine's.
	Lease time.Duration
	// Probe sends a message without effect to the broker, and returns nil when the broker has
	// confirmed it, which counts as the confirmation of another event. It is called when an event has
	// failed again and no event was confirmed since; Timeout limits it. It is called concurrently. Nil: while
	// there are no other events, events that cannot be published are retried as if the broker were down.
	Probe func(ctx context.Context) error
}

func (o *Options) setDefaults() error {
	switch {
	case o.Poll < 0:
		return invalid("Poll", "is negative: "+o.Poll.String())
	case o.Batch < 0 || o.Batch > maxBatch:
		return invalid("Batch", "is not from 1 to 1000")
	case o.Timeout < 0:
		return invalid("Timeout", "is negative: "+o.Timeout.String())
	case o.MaxFailures < 0:
		return invalid("MaxFailures", "is negative")
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Batch == 0 {
		o.Batch = 100
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 10
	}
	return nil
}

const (
	maxBatch = 1000
	// idle is how long a relay keeps a lane without events. A kept lane costs one renewal
	// per heartbeat, and saves a claim and a release for each event.
	idle = 15 * time.Second
	// firstDelay and lastDelay are the delays after a first failure and after many.
	firstDelay = 100 * time.Millisecond
	lastDelay  = 10 * time.Second
)
