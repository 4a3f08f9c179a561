package semel

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
)

// A stored fingerprint is one byte for the algorithm, one for the version of the
// operation's own choice of fields, and the first 128 bits of the SHA-256 of these fields.
// That of a bound call has 64 bits more: those of what it is bound to.
const (
	fingerprintJSON = 5 // the chosen fields in their canonical form; of a Raw, its bytes
	fingerprintOwn  = 4 // what a Fingerprinter appends
	inputSize       = 2 + 16
	boundSize       = inputSize + 8
)

// fingerprint is one as it is stored. The last bytes count only if the call is bound.
type fingerprint [boundSize]byte

// sameness is the result of comparing a call with a record's fingerprint.
type requestMatch uint8

const (
	sameRequest requestMatch = iota
	otherRequest
	// unknownRequest: a newer version of the program made the record, and this one
	// cannot compute its fingerprint.
	unknownRequest
)

// Fingerprinter is an input, or what a function of Fingerprints returns, that says
// itself what makes it the same request: AppendFingerprint appends that to b, and
// returns it as append does. Two requests are the same when they append the same
// bytes, so the parts are to be told apart, by their lengths for instance. A struct
// that embeds a Fingerprinter is one, too: its other fields say nothing unless it has
// an AppendFingerprint of its own. Inputs that are no Fingerprinter are compared by their
// JSON, in which struct fields with their zero value do not count, nor does the order of
// fields: a field that a later version of the program adds does not make the requests of
// an earlier one different ones. A pointer to a zero value is not the zero value, and the
// keys of a map are not fields.
type Fingerprinter interface {
	AppendFingerprint(b []byte) ([]byte, error)
}

// version is the operation's current choice of fields: 0 for the whole input,
// else the number of Fingerprints.
func (o *Operation[In]) version() int { return len(o.fingerprints) }

// digest is the fingerprint of an input by a version of the operation's choice.
func (o *Operation[In]) digest(version int, input any) (f fingerprint, err error) {
	there, inPlace := input.(valueRef[In])
	switch {
	case version > len(o.fingerprints):
		return f, fmt.Errorf("fingerprint version %d is newer than this program", version)
	case version > 0:
		in, _ := o.value(input) // a nil interface is the zero In
		input = o.fingerprints[version-1](in)
	case inPlace && o.speaks:
		input = there.ptr // which has the methods of what is there
	case inPlace:
		input = *there.ptr
	}
	s := getBuffer()
	defer s.release()
	text, algorithm, err := s.fields(input)
	if err != nil {
		return f, lostInputError(err)
	}
	sum := sha256.Sum256(text)
	f[0], f[1] = algorithm, byte(version)
	copy(f[2:inputSize], sum[:])
	return f, nil
}

// fields are the bytes that are digested, and what they are.
func (s *encodeBuffer) fields(v any) (text []byte, algorithm byte, err error) {
	switch v := v.(type) {
	case Raw:
		return v, fingerprintJSON, nil
	case Fingerprinter:
		s.own, err = v.AppendFingerprint(s.own[:0])
		return s.own, fingerprintOwn, err
	default:
		s.own, err = canonical(s.own[:0], v)
		return s.own, fingerprintJSON, err
	}
}

// compareFingerprint compares the call with a stored fingerprint, computing its own in the
// way in which the stored one was computed. A binding that only one of the two has does
// not count.
func (c *Call) compareFingerprint(stored []byte) requestMatch {
	own := c.fingerprint()
	if subtle.ConstantTimeCompare(stored, own) == 1 {
		return sameRequest
	}
	if c.found {
		return otherRequest
	}
	if len(stored) != inputSize && len(stored) != boundSize ||
		stored[0] != fingerprintJSON && stored[0] != fingerprintOwn || int(stored[1]) > int(c.digest[1]) {
		return unknownRequest
	}
	if len(stored) == boundSize && c.bound && subtle.ConstantTimeCompare(stored[inputSize:], own[inputSize:]) == 0 {
		return otherRequest
	}
	if stored[1] != own[1] {
		older, err := c.op.digest(int(stored[1]), c.input)
		if err != nil {
			return unknownRequest
		}
		own = older[:]
	}
	if subtle.ConstantTimeCompare(stored[:inputSize], own[:inputSize]) == 1 {
		return sameRequest
	}
	return otherRequest
}
