package semelwatermill

import (
	"context"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel/outbox"
)

// The metadata of a message that [Publisher] publishes. A header of the event with the
// same name is replaced.
const (
	MetadataEventID   = "event_id"        // the ID of the event, which is also the message's UUID
	MetadataAggregate = "event_aggregate" // the aggregate: the partition key, where there are partitions
	MetadataType      = "event_type"
)

// Publisher returns a publisher for a relay of package outbox, which publishes with p to
// the topic of the event. The headers of the event are the metadata of the message.
//
// p must confirm: it must return only when the broker has the message. A publisher that
// sends in the background, such as one for AMQP without PublisherConfirms or one for Kafka
// without RequiredAcks, loses messages when the process ends. p must also end when the
// context of the message ends, or limit its own time.
//
// Receivers give [FromMetadata] or [FromUUID] to an inbox, which ignores repetitions.
func Publisher(p message.Publisher) outbox.Publisher {
	return outbox.PublisherFunc(func(ctx context.Context, m outbox.Message) error {
		msg := message.NewMessage(m.ID, m.Payload)
		for name, value := range m.Headers {
			msg.Metadata.Set(name, value)
		}
		msg.Metadata.Set(MetadataEventID, m.ID)
		msg.Metadata.Set(MetadataAggregate, m.Aggregate)
		msg.Metadata.Set(MetadataType, m.Type)
		msg.SetContext(ctx)
		return p.Publish(m.Topic, msg)
	})
}
