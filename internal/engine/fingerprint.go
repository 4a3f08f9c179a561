package engine

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/internal/protocol"
)

// A stored fingerprint has one byte for the algorithm, one for the version of the
// operation's choice of fields, and the first 128 bits of the SHA-256 of these
// fields. The fingerprint of a bound call has 64 bits more, of its binding.
const (
	fingerprintJSON = 5 // the chosen fields in their canonical form; of a Raw, its bytes
	fingerprintOwn  = 4 // the bytes of a Fingerprinter
	inputSize       = 2 + 16
	boundSize       = inputSize + 8
)

// fingerprint is a stored fingerprint. The last bytes are used only if the call is
// bound.
type fingerprint [boundSize]byte

// Fingerprinter is an input, or the value of a function of Fingerprints, that
// chooses the bytes of its fingerprint: AppendFingerprint appends them to b.
type Fingerprinter interface {
	AppendFingerprint(b []byte) ([]byte, error)
}

// digest computes the fingerprint of an input with a version of the operation's choice
// of fields: 0 for the whole input, else the number of Fingerprints.
func (o *Operation[In]) digest(version int, input any) (f fingerprint, err error) {
	there, inPlace := input.(*In)
	switch {
	case version > len(o.fingerprints):
		return f, fmt.Errorf("fingerprint version %d is newer than this program", version)
	case version > 0:
		in, _ := o.value(input) // a nil interface is the zero In
		input = o.fingerprints[version-1](in)
	case inPlace && o.speaks:
		input = there // the pointer has the methods of the value
	case inPlace:
		input = *there
	}
	s := codec.GetBuffer()
	defer s.Release()
	f[0], f[1] = fingerprintJSON, byte(version)
	text, raw := input.(codec.Raw)
	if !raw {
		if own, ok := input.(Fingerprinter); ok {
			f[0] = fingerprintOwn
			s.Bytes, err = own.AppendFingerprint(s.Bytes[:0])
		} else {
			s.Bytes, err = canonical.Append(s.Bytes[:0], input)
		}
		text = s.Bytes
	}
	if err != nil {
		return fingerprint{}, lostInputError(err)
	}
	sum := sha256.Sum256(text)
	copy(f[2:inputSize], sum[:])
	return f, nil
}

// compareFingerprint compares the call with a stored fingerprint, whose algorithm
// and version it uses. A binding that only one of the two has does not matter.
func (c *Call) compareFingerprint(stored []byte) protocol.RequestMatch {
	own := c.fingerprint()
	if subtle.ConstantTimeCompare(stored, own) == 1 {
		return protocol.SameRequest
	}
	if c.found {
		return protocol.OtherRequest
	}
	if len(stored) != inputSize && len(stored) != boundSize ||
		stored[0] != fingerprintJSON && stored[0] != fingerprintOwn || int(stored[1]) > int(c.digest[1]) {
		return protocol.UnknownRequest
	}
	if c.boundElsewhere(stored) {
		return protocol.OtherRequest
	}
	if stored[1] != own[1] {
		older, err := c.op.digest(int(stored[1]), c.input)
		if err != nil {
			return protocol.UnknownRequest
		}
		own = older[:]
	}
	if subtle.ConstantTimeCompare(stored[:inputSize], own[:inputSize]) == 1 {
		return protocol.SameRequest
	}
	return protocol.OtherRequest
}

// boundElsewhere reports whether the call and a stored fingerprint have different bindings.
func (c *Call) boundElsewhere(stored []byte) bool {
	return len(stored) == boundSize && c.bound && subtle.ConstantTimeCompare(stored[inputSize:], c.digest[inputSize:]) == 0
}

// lostInputError returns the error of a call whose input JSON loses in part.
func lostInputError(err error) error {
	loss, ok := errtype.Find[*canonical.LossError](err)
	if !ok {
		return &callerr.FieldError{Field: "Input", Reason: "cannot be encoded: " + err.Error(), Err: err}
	}
	return callerr.Invalid("Input"+loss.Path, loss.Why)
}

// encodeInput returns the JSON of an input, or an error if JSON loses a part of it.
func (o *Operation[In]) encodeInput(input any) ([]byte, error) {
	at, inPlace := input.(*In)
	if !inPlace {
		in, _ := o.value(input) // a nil interface is the zero In
		at = &in
	}
	text, err := json.Marshal(at)
	if err != nil {
		return nil, lostInputError(err)
	}
	s := codec.GetBuffer()
	defer s.Release()
	if _, s.Bytes, err = canonical.Check(reflect.ValueOf(at).Elem(), text, s.Bytes); err != nil {
		return nil, lostInputError(err)
	}
	return text, nil
}

// checkInput returns an error if a part of the input changes when it is encoded and
// decoded. Other losses are found when the fingerprint is computed.
func (o *Operation[In]) checkInput(input any) error {
	if o.exact || len(o.fingerprints) > 0 {
		return nil
	}
	in, _ := o.value(input)
	switch any(in).(type) {
	case codec.Raw, Fingerprinter:
		return nil
	}
	_, err := o.encodeInput(input)
	return err
}
