package hub

import (
	"encoding/binary"
	"encoding/json"
	"math"
)

// Frame is one JSON object that is encoded once and shared by all sessions. It is
// not changed after NewFrame.
type Frame struct {
	data []byte // a WebSocket text frame: header and payload
	head int    // length of the header
}

const (
	finText  = 0x81 // the last frame of a text message
	length16 = 126  // the length follows in 2 bytes
	length64 = 127  // the length follows in 8 bytes
)

// NewFrame encodes a JSON object, which it copies.
func NewFrame(object []byte) *Frame {
	data := make([]byte, 0, len(object)+10)
	switch n := len(object); {
	case n < length16:
		data = append(data, finText, byte(n))
	case n <= math.MaxUint16:
		data = binary.BigEndian.AppendUint16(append(data, finText, length16), uint16(n))
	default:
		data = binary.BigEndian.AppendUint64(append(data, finText, length64), uint64(n))
	}
	head := len(data)
	return &Frame{append(data, object...), head}
}

// FrameOf encodes a value that always has a JSON form.
func FrameOf(value any) *Frame {
	object, err := json.Marshal(value)
	if err != nil {
		object = []byte(`{"push":"resync"}`) // the client then reads the event from the database
	}
	return NewFrame(object)
}

// JSON is the object. The caller must not change it.
func (f *Frame) JSON() []byte { return f.data[f.head:] }

// WebSocket is the object as an unmasked WebSocket text frame, as a server sends
// it. The caller must not change it.
func (f *Frame) WebSocket() []byte { return f.data }

// bye announces that the server closes the session. The client reconnects after
// the given time and resumes after the changes that it has seen.
type bye struct {
	Push           string `json:"push"`
	Reason         string `json:"reason"`
	ReconnectAfter int64  `json:"reconnect_after_ms"`
}

// resync tells a client that events may have been lost: it subscribes to each group
// again, after the last change that it has seen, at a random time within the given
// one.
type resync struct {
	Push   string `json:"push"`
	Within int64  `json:"within_ms"`
}
