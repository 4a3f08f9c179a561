package inbox

import (
	"time"

	"github.com/semelgo/semel/store"
)

// Decision is what the consumer must do with a delivery.
type Decision uint8

const (
	// Redeliver: the message was not handled. Let the broker deliver it again
	// after Result.After, and do not acknowledge it.
	Redeliver Decision = iota
	// Ack: the message was handled, now or before. Acknowledge it.
	Ack
	// Reject: the message must not be handled. Move it to the dead letters,
	// where an operator finds it, and then acknowledge it. Never drop it.
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

// Result is the result of a delivery.
type Result struct {
	Decision Decision
	// After is the minimum delay before the next delivery, at least a tenth of
	// a second. An earlier delivery gets the same decision again and is not
	// counted.
	After time.Duration
	// Duplicate reports that the message had ended before this delivery, and
	// that no handler ran: with Ack it was handled, with Poisoned it has
	// failed.
	Duplicate bool
	// Poisoned reports that the message has failed for good and had no effect:
	// its handler failed too often or returned a Final error, or its consumers
	// crashed too often. admin.Redrive lets it be handled again.
	Poisoned bool
	// InDoubt reports that it is unknown whether the message was handled. Keep
	// such a message apart from poison: if it is handled again, it may have its
	// effect twice. An operator must find out, resolve the record, and only
	// then redeliver the message, if at all.
	InDoubt bool
	// ID is the ID of the message's record. It may be logged. It is zero if the
	// message has no valid identity.
	ID store.ID
	// Err is the reason for the decision. It is nil if the message was handled.
	Err error
}
