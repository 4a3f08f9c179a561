package semel

import (
	"bytes"
	"encoding/json"
	"sync"
)

// encodeBuffer is a pooled buffer for bytes that are digested or copied at once.
type encodeBuffer struct {
	text bytes.Buffer
	enc  *json.Encoder // writes to text
	own  []byte        // for append functions
}

// encodeBuffers share no data between users: each writes before it reads.
//
//nolint:gochecknoglobals // see above
var encodeBuffers = sync.Pool{New: func() any {
	s := new(encodeBuffer)
	s.enc = json.NewEncoder(&s.text)
	return s
}}

func getBuffer() *encodeBuffer { return encodeBuffers.Get().(*encodeBuffer) }

// maxKeptBuffer is the largest buffer that is kept, in bytes, so that one large
// input does not occupy memory for good.
const maxKeptBuffer = 64 << 10

// release returns s to the pool.
func (s *encodeBuffer) release() {
	if s.text.Cap() <= maxKeptBuffer && cap(s.own) <= maxKeptBuffer {
		encodeBuffers.Put(s)
	}
}

// json is json.Marshal into s.
func (s *encodeBuffer) json(v any) ([]byte, error) {
	s.text.Reset()
	if err := s.enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(s.text.Bytes(), []byte{'\n'}), nil
}
