package semelwatermill

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// Options says how the messages of a router are handled. Name is required; the
// rest of the zero value is good.
type Options struct {
	// Name says what names a message. Required: there is no safe default.
	Name NameFunc
	// Sent says when its producer sent a message, for inboxes that are Stamped;
	// see inbox.Message. A message that it has an error for is rejected.
	Sent func(msg *message.Message) (time.Time, error)
	// Poison gets what is never to be handled. Nil: the router gets a
	// *[RejectedError].
	Poison message.Publisher
	// PoisonTopic is where Poison publishes. Required with Poison.
	PoisonTopic string
	// MaxWait is the longest a message that is to come again is held before it is
	// nacked, so that a broker without delays does not deliver it in a tight loop.
	// It is below the time after which the broker takes an unacknowledged message
	// back. Zero: 5 seconds.
	MaxWait time.Duration
}

func (o *Options) setDefaults() error {
	switch {
	case o.Name == nil:
		return invalid("Name", "is required; FromMetadata, FromUUID and FromPayload are some")
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
