package semel

import (
	"bytes"
	"encoding/json"
	"sync"
)

// scratch is room to write to what is digested or copied at once, and then not
// needed any more.
type encodeBuffer struct {
	text bytes.Buffer
	enc  *json.Encoder // writes to text
	own  []byte        // what others append
}

// scratches carry nothing over: who borrows one writes before reading.
//
//nolint:gochecknoglobals // see above
var encodeBuffers = sync.Pool{New: func() any {
	s := new(encodeBuffer)
	s.enc = json.NewEncoder(&s.text)
	return s
}}

func getBuffer() *encodeBuffer { return encodeBuffers.Get().(*encodeBuffer) }

// maxScratch is the room that is kept, in bytes: one large input is not to be paid
// for until the process ends.
const maxKeptBuffer = 64 << 10

// giveBack ends the use of what was written.
func (s *encodeBuffer) release() {
	if s.text.Cap() <= maxKeptBuffer && cap(s.own) <= maxKeptBuffer {
		encodeBuffers.Put(s)
	}
}

// json is json.Marshal to s.
func (s *encodeBuffer) json(v any) ([]byte, error) {
	s.text.Reset()
	if err := s.enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(s.text.Bytes(), []byte{'\n'}), nil
}
