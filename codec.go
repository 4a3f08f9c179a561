package semel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

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

// RawAppender is a result that is stored as the [Raw] that AppendRaw appends to b.
// It is for adapters whose results have several parts.
type RawAppender interface {
	AppendRaw(b []byte) []byte
}

// encoded is an encoded result.
type encoded struct {
	outcome []byte
	// lossless means that decoding the outcome gives the encoded value.
	lossless bool
	// altered says which part decoding does not give back. Nil: none.
	altered error
}

// encodeResult encodes v into new memory, because a store may keep the bytes.
func encodeResult(v any) (e encoded, err error) {
	s := getBuffer()
	defer s.release()
	switch v := v.(type) {
	case Raw:
		return encoded{outcome: tagged(outcomeRaw, v), lossless: true}, nil
	case *Raw:
		return encoded{outcome: tagged(outcomeRaw, *v), lossless: true}, nil
	case RawAppender:
		s.own = v.AppendRaw(append(s.own[:0], outcomeRaw))
		return encoded{outcome: bytes.Clone(s.own), lossless: true}, nil
	}
	text, err := s.json(v)
	if err != nil {
		return e, fmt.Errorf("marshal result: %w", err)
	}
	e.outcome = tagged(outcomeJSON, text)
	value := reflect.ValueOf(v)
	if !value.IsValid() { // a nil interface is null
		return e, nil
	}
	if value.Kind() == reflect.Pointer && !value.IsNil() { // the result itself, or a reference to it
		value = value.Elem()
	}
	if e.lossless, s.own, err = canonical.Check(value, text, s.own); err != nil {
		e.altered = fmt.Errorf("the stored result differs from the one that the function returned: result%w", err)
	}
	return e, nil
}

// pointerHolder holds a pointer to a value. The pointer gives the value's static
// type, and methods with pointer receivers.
type pointerHolder interface{ pointer() any }

// resultOf returns the result, or the pointer to it if v is a reference. Results
// that are not encoded as JSON are returned as values.
func resultOf(v any) any {
	p, ok := v.(pointerHolder)
	if !ok {
		return v
	}
	at := p.pointer()
	switch at := at.(type) {
	case *Raw:
		return at
	case *Tombstone:
		return *at
	}
	value := reflect.ValueOf(at).Elem()
	if kind := value.Kind(); kind == reflect.Pointer || kind == reflect.Interface {
		switch inner := value.Interface().(type) {
		case Raw, Tombstone, RawAppender:
			return inner
		}
	}
	return at
}

// tagged returns a copy of text after the byte of its kind.
func tagged(kind byte, text []byte) []byte {
	return append(append(make([]byte, 0, 1+len(text)), kind), text...)
}

func decodeResult(outcome []byte, into any) error {
	if len(outcome) == 0 {
		return fmt.Errorf("%w: the record has no outcome", ErrResultUnavailable)
	}
	text := outcome[1:]
	raw, wantRaw := into.(*Raw)
	if v, ok := into.(*any); ok && outcome[0] == outcomeRaw {
		*v = append(Raw{}, text...)
		return nil
	}
	switch {
	case outcome[0] == outcomeTombstone:
		return fmt.Errorf("%w: %s", ErrResultUnavailable, text)
	case outcome[0] == outcomeRaw && wantRaw:
		*raw = append(Raw{}, text...)
		return nil
	case outcome[0] == outcomeJSON && !wantRaw:
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("%w: unmarshal result: %w", ErrResultUnavailable, err)
		}
		return nil
	default:
		return fmt.Errorf("%w: stored as kind %q, requested as %T", ErrResultUnavailable, outcome[0], into)
	}
}

func encodeTombstone(why string) []byte { return append([]byte{outcomeTombstone}, why...) }

func isTombstone(outcome []byte) bool { return len(outcome) > 0 && outcome[0] == outcomeTombstone }

// encodeFailure encodes err as the operation's failure, in at most limit bytes.
func encodeFailure(err error, limit int) []byte {
	failure := failureOf(err)
	text, merr := json.Marshal(failure)
	if merr != nil || len(text) >= limit {
		const room = 256 // for the quotes, the code and what escaping adds to ASCII
		text, _ = json.Marshal(&Failure{Code: cut(failure.Code, room/4), Message: cut(failure.Message, (limit-room)/6)})
	}
	return append([]byte{outcomeFailure}, text...)
}

func failureOf(err error) *Failure {
	var f *Failure
	if asOwn(err, &f) {
		return f
	}
	return &Failure{Message: err.Error()}
}

func cut(s string, n int) string { return s[:min(len(s), max(n, 0))] }

func decodeFailure(outcome []byte) *Failure {
	if len(outcome) == 0 || outcome[0] != outcomeFailure && outcome[0] != outcomeDeadLetter {
		return &Failure{Message: "failed; the record says no more"}
	}
	f := new(Failure)
	if err := json.Unmarshal(outcome[1:], f); err != nil {
		return &Failure{Message: "failed; the stored failure cannot be read"}
	}
	return f
}

// Failure returns the stored failure of a Failed record, as callers receive it, or
// nil for any other record.
func (o *Outcome) Failure() *Failure {
	if o.Record.State != store.Failed {
		return nil
	}
	return decodeFailure(o.Record.Outcome)
}
