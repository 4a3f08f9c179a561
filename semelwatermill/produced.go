package semelwatermill

import "github.com/ThreeDotsLabs/watermill/message"

// producedMessage is a message that a handler produced, as it is stored with
// the record.
type producedMessage struct {
	UUID     string            `json:"uuid"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Payload  []byte            `json:"payload"`
}

func encodeMessages(out []*message.Message) []producedMessage {
	var all []producedMessage
	for _, msg := range out {
		all = append(all, producedMessage{msg.UUID, msg.Metadata, msg.Payload})
	}
	return all
}

func decodeMessages(all []producedMessage) []*message.Message {
	var out []*message.Message
	for _, p := range all {
		msg := message.NewMessage(p.UUID, p.Payload)
		for k, v := range p.Metadata {
			msg.Metadata.Set(k, v)
		}
		out = append(out, msg)
	}
	return out
}
