package semelwatermill

import "github.com/ThreeDotsLabs/watermill/message"

// produced is a message that a handler has produced, as it is kept with the record.
type produced struct {
	UUID     string            `json:"uuid"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Payload  []byte            `json:"payload"`
}

func kept(out []*message.Message) []produced {
	var all []produced
	for _, msg := range out {
		all = append(all, produced{msg.UUID, msg.Metadata, msg.Payload})
	}
	return all
}

func messages(all []produced) []*message.Message {
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
