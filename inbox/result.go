package inbox

import (
	"time"

	"github.com/semelgo/semel/store"
)

// Decision is what the consumer is to do with a delivery.
type Decision uint8

const (
	// Redeliver: the message was not handled. Have it delivered again, after
	// Result.After; do not acknowledge it.
	Redeliver Decision = iota
	// Ack: the message was handled, now or before. Acknowledge it.
	Ack
	// Reject: the message is not to be handled. Move it to the dead letters,
	// where a person finds it, and acknowledge it then. Never drop it.
	Reject
)

// String returns the decision's name.
func (d Decision) String() string {
	switch d {
	case Redeliver:
		return "Redeliver"
	case Ack:
		return "Ack"
	case Reject:
		return "Reject"
	default:
		return "Decision(?)"
	}
}

// Result says what became of a delivery.
type Result struct {
	Decision Decision
	// After is how long a message that is to be delivered again stays away: at
	// least a tenth of a second. Whoever comes sooner is told the same again, and
	// nothing is counted.
	After time.Duration
	// Duplicate says that the message had its end before this delivery, which
	// ran nothing: with Ack it was handled, with Poisoned it has failed.
	Duplicate bool
	// Poisoned says that the message has failed for good, and had no effect: its
	// handler failed too often, or said Final; or its consumers died of it too
	// often. semel's Redrive lets it be handled again.
	Poisoned bool
	// InDoubt says that nobody knows whether the message was handled. It is to be
	// kept apart from poison: handled again it may have its effect twice. Somebody
	// looks, resolves the record, and only then sends it round again, if at all.
	InDoubt bool
	// ID is the message's record, which may be logged; zero if the message has no
	// name.
	ID store.ID
	// Err is why, unless the message was simply handled.
	Err error
}
