package semelwatermill

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Options configure [Middleware] and [MiddlewareTx]. Name is required; the zero value of the
// other fields is valid.
type Options struct {
	// Name returns the identity of a message. Required: there is no safe
	// default.
	Name NameFunc
	// Sent returns the time at which the producer sent a message, for inboxes
	// that are Stamped; see inbox.Message. If it returns an error, the message
	// is rejected.
	Sent func(msg *message.Message) (time.Time, error)
	// Poison publishes rejected messages. If it is nil, the router gets a
	// *[RejectedError].
	Poison message.Publisher
	// PoisonTopic is the topic for Poison. Required with Poison.
	PoisonTopic string
	// MaxWait is the longest time for which a message is held before it is
	// nacked, so that a broker without delays does not redeliver it in a tight
	// loop. It must be shorter than the time after which the broker redelivers
	// an unacknowledged message. Zero means 5 seconds.
	MaxWait time.Duration
}

func (o *Options) setDefaults() error {
	switch {
	case o.Name == nil:
		return invalid("Name", "is required, for example FromMetadata, FromUUID or FromPayload")
	case o.Poison != nil && o.PoisonTopic == "":
		return invalid("PoisonTopic", "is required with Poison")
	case o.Poison == nil && o.PoisonTopic != "":
		return invalid("Poison", "is required with PoisonTopic")
	case o.MaxWait < 0:
		return invalid("MaxWait", "is negative: "+o.MaxWait.String())
	}
	if o.MaxWait == 0 {
		o.MaxWait = 5 * time.Second
	}
	return nil
}
