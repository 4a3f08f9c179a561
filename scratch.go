package semel

import (
	"bytes"
	"encoding/json"
	"sync"
)

// scratch is room to write to what is digested or copied at once, and then not
// needed any more.
type scratch struct {
	text bytes.Buffer
	enc  *json.Encoder // writes to text
	own  []byte        // what others append
}

// scratches carry nothing over: who borrows one writes before reading.
//
//nolint:gochecknoglobals // see above
var scratches = sync.Pool{New: func() any {
	s := new(scratch)
	s.enc = json.NewEncoder(&s.text)
	return s
}}

func borrow() *scratch { return scratches.Get().(*scratch) }

// maxScratch is the room that is kept, in bytes: one large input is not to be paid
// for until the process ends.
const maxScratch = 64 << 10

// giveBack ends the use of what was written.
func (s *scratch) giveBack() {
	if s.text.Cap() <= maxScratch && cap(s.own) <= maxScratch {
		scratches.Put(s)
	}
}

// json is json.Marshal to s.
func (s *scratch) json(v any) ([]byte, error) {
	s.text.Reset()
	if err := s.enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(s.text.Bytes(), []byte{'\n'}), nil
}
