package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/store"
)

// Raw is a result that is stored and returned byte for byte. Other results are
// stored as encoding/json encodes them.
type Raw []byte

// A stored outcome is one byte for its kind, and the rest.
const (
	outcomeJSON      = 'j'
	outcomeRaw       = 'r'
	outcomeFailure   = 'f'
	outcomeTombstone = 't'
)

// Tombstone is the result of an operation that succeeded and whose result cannot be
// returned again, because it was streamed for instance. Its text is the reason.
// Retries get [ErrResultUnavailable].
type Tombstone string

// Encoded is an encoded result.
type Encoded struct {
	Outcome []byte
	// lossless means that decoding the outcome gives the encoded value.
	Lossless bool
	// altered says which part decoding does not give back. Nil: none.
	Altered error
}

// EncodeResult encodes v into new memory, because a store may keep the bytes.
func EncodeResult(v any) (e Encoded, err error) {
	switch v := v.(type) {
	case Raw:
		return Encoded{Outcome: slices.Concat([]byte{outcomeRaw}, v), Lossless: true}, nil
	case *Raw:
		return Encoded{Outcome: slices.Concat([]byte{outcomeRaw}, *v), Lossless: true}, nil
	}
	s := GetBuffer()
	defer s.Release()
	text, err := s.JSON(v)
	if err != nil {
		return e, fmt.Errorf("marshal result: %w", err)
	}
	e.Outcome = slices.Concat([]byte{outcomeJSON}, text)
	value := reflect.ValueOf(v)
	if !value.IsValid() { // a nil interface is null
		return e, nil
	}
	if value.Kind() == reflect.Pointer && !value.IsNil() { // the result itself, or a pointer to it
		value = value.Elem()
	}
	if e.Lossless, s.Bytes, err = canonical.Check(value, text, s.Bytes); err != nil {
		e.Altered = fmt.Errorf("the stored result differs from the one that the function returned: result%w", err)
	}
	return e, nil
}

// ResultOf returns the result v, which may be a pointer to it. The pointer gives the
// static type, and methods with pointer receivers. Results that are not encoded as JSON
// are returned as values.
func ResultOf(v any) any {
	switch v := v.(type) {
	case *Raw:
		return v
	case *Tombstone:
		return *v
	}
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.IsNil() {
		return v
	}
	if kind := value.Elem().Kind(); kind == reflect.Pointer || kind == reflect.Interface {
		switch inner := value.Elem().Interface().(type) {
		case Raw, Tombstone:
			return inner
		}
	}
	return v
}

// DecodeResult decodes a stored result into a pointer.
func DecodeResult(outcome []byte, into any) error {
	if len(outcome) == 0 {
		return fmt.Errorf("%w: the record has no outcome", callerr.ErrResultUnavailable)
	}
	text := outcome[1:]
	raw, wantRaw := into.(*Raw)
	if v, ok := into.(*any); ok && outcome[0] == outcomeRaw {
		*v = append(Raw{}, text...)
		return nil
	}
	switch {
	case outcome[0] == outcomeTombstone:
		return fmt.Errorf("%w: %s", callerr.ErrResultUnavailable, text)
	case outcome[0] == outcomeRaw && wantRaw:
		*raw = append(Raw{}, text...)
		return nil
	case outcome[0] == outcomeJSON && !wantRaw:
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%w: unmarshal result: %w", callerr.ErrResultUnavailable, err)
		}
		return nil
	default:
		return fmt.Errorf("%w: stored as kind %q, requested as %T", callerr.ErrResultUnavailable, outcome[0], into)
	}
}

// EncodeTombstone returns the outcome of a success whose result is not stored.
func EncodeTombstone(why string) []byte { return append([]byte{outcomeTombstone}, why...) }

// IsTombstone reports whether an outcome is a tombstone.
func IsTombstone(outcome []byte) bool { return len(outcome) > 0 && outcome[0] == outcomeTombstone }

// EncodeFailure encodes err as the operation's failure, in at most limit bytes.
func EncodeFailure(err error, limit int) []byte {
	var failure *callerr.Failure
	if !callerr.AsOwn(err, &failure) {
		failure = &callerr.Failure{Message: err.Error()}
	}
	text, merr := json.Marshal(failure)
	if merr != nil || len(text) >= limit {
		const room = 256 // for the quotes, the code and what escaping adds to ASCII
		text, _ = json.Marshal(&callerr.Failure{Code: Cut(failure.Code, room/4), Message: Cut(failure.Message, (limit-room)/6)})
	}
	return append([]byte{outcomeFailure}, text...)
}

// Cut returns the first n bytes of s.
func Cut(s string, n int) string { return s[:min(len(s), max(n, 0))] }

// DecodeFailure returns a stored failure, or one that says why it cannot be read.
func DecodeFailure(outcome []byte) *callerr.Failure {
	if len(outcome) == 0 || outcome[0] != outcomeFailure && outcome[0] != outcomeDeadLetter {
		return &callerr.Failure{Message: "failed; the record says no more"}
	}
	f := new(callerr.Failure)
	if err := json.Unmarshal(outcome[1:], f); err != nil {
		return &callerr.Failure{Message: "failed; the stored failure cannot be read"}
	}
	return f
}

// outcomeDeadLetter is the first byte of the outcome of a dead letter. A stored
// failure follows, in the state Failed as well as InDoubt. No function can store
// this byte by itself, so a caller's failed key never looks like a dead letter.
const outcomeDeadLetter = store.DeadLetterMark

// IsDeadLetter reports whether r is a dead letter: a task or a message that is not
// tried again, because its attempts are used up or because its consumer rejected
// the message. It is Failed, or InDoubt under a policy that allows another attempt.
// The record itself says so, in the first byte of its outcome, "d"; the operation's
// definition is not needed. Dead letters are kept for [Retry].DeadLetterRetention,
// and [Redrive] accepts them.
func IsDeadLetter(r store.Record) bool {
	return (r.State == store.Failed || r.State == store.InDoubt) && len(r.Outcome) > 0 && r.Outcome[0] == outcomeDeadLetter
}

// EncodeDeadLetter stores err as the reason why a record is a dead letter, no longer
// than limit.
func EncodeDeadLetter(err error, limit int) []byte {
	outcome := EncodeFailure(err, limit)
	outcome[0] = outcomeDeadLetter
	return outcome
}

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

// GetBuffer returns a buffer from the pool. The caller must Release it.
func GetBuffer() *Buffer { return encodeBuffers.Get().(*Buffer) }

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
