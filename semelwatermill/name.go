package semelwatermill

import (
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/inbox"
)

// NameFunc says what names a message: its producer and its id, the same in each
// delivery. A message that it has an error for is rejected.
type NameFunc func(msg *message.Message) (producer, id string, err error)

// FromMetadata takes both from the message's metadata. A message without one of
// them is rejected.
func FromMetadata(producerKey, idKey string) NameFunc {
	return func(msg *message.Message) (producer, id string, err error) {
		return msg.Metadata.Get(producerKey), msg.Metadata.Get(idKey), nil
	}
}

// FromUUID takes Watermill's own UUID, for topics of one producer. It names a
// message only where the producer sends a message again under the same UUID, and
// where the publisher and the subscriber hand it on: Watermill itself says that it
// is for debugging, and may be empty. A message without one is rejected.
func FromUUID(producer string) NameFunc {
	return func(msg *message.Message) (string, string, error) { return producer, msg.UUID, nil }
}

// FromPayload makes the id of the payload, for topics of one producer that gives
// no ids. Two messages that say the same are one message then; see
// [inbox.PayloadHash].
func FromPayload(producer string) NameFunc {
	return func(msg *message.Message) (string, string, error) {
		return producer, inbox.PayloadHash(msg.Payload), nil
	}
}

func invalid(field, reason string) error { return &semel.FieldError{Field: field, Reason: reason} }
