package semelwatermill

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// NameFunc returns the identity of a message: its producer and its ID, the same
// in each delivery. If it returns an error, the message is rejected.
type NameFunc func(msg *message.Message) (producer, id string, err error)

// FromMetadata takes producer and ID from the message's metadata. A message
// without one of them is rejected.
func FromMetadata(producerKey, idKey string) NameFunc {
	return func(msg *message.Message) (producer, id string, err error) {
		return msg.Metadata.Get(producerKey), msg.Metadata.Get(idKey), nil
	}
}

// FromUUID takes Watermill's UUID as the ID, for topics with one producer. That
// is an identity only if the producer sends a message again under the same
// UUID, and if the publisher and the subscriber transmit the UUID. Watermill
// documents the UUID as a debugging aid that may be empty. A message without
// one is rejected.
func FromUUID(producer string) NameFunc {
	return func(msg *message.Message) (string, string, error) { return producer, msg.UUID, nil }
}

// FromPayload makes the ID from the payload, for topics with one producer that
// sends no IDs. Two messages with the same payload are then one message; see
// [inbox.PayloadHash].
func FromPayload(producer string) NameFunc {
	return func(msg *message.Message) (string, string, error) {
		return producer, inbox.PayloadHash(msg.Payload), nil
	}
}

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }
