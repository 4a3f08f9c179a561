package engine

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/semelgo/semel/internal/buffers"
	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/internal/codec"
)

// lostInputError returns the error of a call whose input JSON loses in part.
func lostInputError(err error) error {
	loss, ok := errors.AsType[*canonical.LossError](err)
	if !ok {
		return callerr.Invalid("Input", "cannot be encoded: "+err.Error())
	}
	return callerr.Invalid("Input"+loss.Path, loss.Why)
}

// encodeInput returns the JSON of an input, or an error if JSON loses a part of it.
func (o *Operation[In]) encodeInput(input any) ([]byte, error) {
	at, inPlace := input.(codec.ValueRef[In])
	if !inPlace {
		in, _ := o.value(input) // a nil interface is the zero In
		at.Ptr = &in
	}
	text, err := json.Marshal(at.Ptr)
	if err != nil {
		return nil, lostInputError(err)
	}
	s := buffers.Get()
	defer s.Release()
	if _, s.Bytes, err = canonical.Check(reflect.ValueOf(at.Ptr).Elem(), text, s.Bytes); err != nil {
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
