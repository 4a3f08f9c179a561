package semel

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/semelgo/semel/store"
)

// Raw is a result that is stored and given back byte for byte. Results of every
// other type are stored as encoding/json writes them.
type Raw []byte

// A stored outcome is one byte for what it is, and the rest.
const (
	outcomeJSON      = 'j'
	outcomeRaw       = 'r'
	outcomeFailure   = 'f'
	outcomeTombstone = 't'
)

// RawAppender is a result that is stored as the [Raw] that AppendRaw appends to b,
// which it returns as append does. It is for adapters, whose results are in several
// pieces.
type RawAppender interface {
	AppendRaw(b []byte) []byte
}

// encodeResult returns what is stored of v, in memory of its own: a store may keep it.
func encodeResult(v any) ([]byte, error) {
	s := borrow()
	defer s.giveBack()
	switch v := v.(type) {
	case Raw:
		return tagged(outcomeRaw, v), nil
	case RawAppender:
		s.own = v.AppendRaw(append(s.own[:0], outcomeRaw))
		return bytes.Clone(s.own), nil
	}
	text, err := s.json(v)
	if err != nil {
		return nil, fmt.Errorf("marshal result: %w", err)
	}
	return tagged(outcomeJSON, text), nil
}

// tagged is a copy of text behind what it is.
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
		return fmt.Errorf("%w: stored as kind %q, asked for as %T", ErrResultUnavailable, outcome[0], into)
	}
}

func encodeTombstone(why string) []byte { return append([]byte{outcomeTombstone}, why...) }

func isTombstone(outcome []byte) bool { return len(outcome) > 0 && outcome[0] == outcomeTombstone }

// encodeFailure stores err as the operation's failure, no longer than limit.
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

// Failure returns the stored failure of a record that is Failed, as its askers
// are told, or nil for any other record.
func (o *Outcome) Failure() *Failure {
	if o.Record.State != store.Failed {
		return nil
	}
	return decodeFailure(o.Record.Outcome)
}
