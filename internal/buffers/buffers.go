package buffers

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Buffer is a pooled buffer for bytes that are digested or copied at once.
type Buffer struct {
	text  bytes.Buffer
	enc   *json.Encoder // writes to text
	Bytes []byte        // for append functions
}

// encodeBuffers share no data between users: each writes before it reads.
//
//nolint:gochecknoglobals // see above
var encodeBuffers = sync.Pool{New: func() any {
	s := new(Buffer)
	s.enc = json.NewEncoder(&s.text)
	return s
}}

// Get returns a buffer from the pool. The caller must Release it.
func Get() *Buffer { return encodeBuffers.Get().(*Buffer) }

// maxKeptBuffer is the largest buffer that is kept, in bytes, so that one large
// input does not occupy memory for good.
const maxKeptBuffer = 64 << 10

// Release returns s to the pool.
func (s *Buffer) Release() {
	if s.text.Cap() <= maxKeptBuffer && cap(s.Bytes) <= maxKeptBuffer {
		encodeBuffers.Put(s)
	}
}

// JSON is json.Marshal into s.
func (s *Buffer) JSON(v any) ([]byte, error) {
	s.text.Reset()
	if err := s.enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(s.text.Bytes(), []byte{'\n'}), nil
}
