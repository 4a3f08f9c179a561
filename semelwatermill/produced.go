package semelwatermill

import (
	"maps"

	"github.com/ThreeDotsLabs/watermill/message"
)

// producedMessage is a message that a handler produced, as it is stored with
// the record.
type producedMessage struct {
	UUID     string            `json:"uuid"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Payload  []byte            `json:"payload"`
}

// encodeMessages returns the stored form of messages. Their metadata continue the trace of the
// handler, unless the handler has chosen another one.
func encodeMessages(out []*message.Message, trace map[string]string) []producedMessage {
	var all []producedMessage
	for _, msg := range out {
		metadata := maps.Clone(trace)
		if metadata == nil {
			metadata = msg.Metadata
		} else {
			maps.Copy(metadata, msg.Metadata)
		}
		all = append(all, producedMessage{msg.UUID, metadata, msg.Payload})
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
