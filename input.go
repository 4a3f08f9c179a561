package semel

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/semelgo/semel/internal/canonical"
)

// lostInputError returns the error of a call whose input JSON loses in part.
func lostInputError(err error) error {
	loss, ok := errors.AsType[*canonical.LossError](err)
	if !ok {
		return invalid("Input", "cannot be encoded: "+err.Error())
	}
	return invalid("Input"+loss.Path, loss.Why)
}

// encodeInput returns the JSON of an input, or an error if JSON loses a part of it.
func (o *Operation[In]) encodeInput(input any) ([]byte, error) {
	at, inPlace := input.(valueRef[In])
	if !inPlace {
		in, _ := o.value(input) // a nil interface is the zero In
		at.ptr = &in
	}
	text, err := json.Marshal(at.ptr)
	if err != nil {
		return nil, lostInputError(err)
	}
	s := getBuffer()
	defer s.release()
	if _, s.own, err = canonical.Check(reflect.ValueOf(at.ptr).Elem(), text, s.own); err != nil {
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
	case Raw, Fingerprinter:
		return nil
	}
	_, err := o.encodeInput(input)
	return err
}
