package semel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// canonical appends the canonical form of v.
func canonical(b []byte, v any) ([]byte, error) {
	if v == nil {
		return append(b, "null"...), nil
	}
	value := reflect.ValueOf(v)
	return appendCanonical(b, value, jsonFormOf(value.Type()), 0)
}

// pointerHolder holds a pointer to a value. The pointer gives the value's static
// type, and methods with pointer receivers.
type pointerHolder interface{ pointer() any }

// checkLossless returns what JSON loses of v, whose JSON is text: invalid UTF-8, or
// a field that JSON does not contain. It is cheap if nothing is lost.
func (s *encodeBuffer) checkLossless(v reflect.Value, f *jsonForm, text []byte) error {
	if f.exact && f.complete && !mayHaveReplaced(text) {
		return nil
	}
	var err error
	s.own, err = appendCanonical(s.own[:0], v, f, 0)
	return err
}

// mayHaveReplaced reports whether text has the character that encoding/json writes
// in place of invalid UTF-8, escaped or not. A valid string may contain it, too.
func mayHaveReplaced(text []byte) bool {
	return bytes.Contains(text, []byte(`\ufffd`)) || bytes.Contains(text, []byte("\ufffd"))
}

// checkRoundTrip checks that text can be decoded, and that the decoded value has
// the same JSON.
func (f *jsonForm) checkRoundTrip(text []byte) error {
	decoded := reflect.New(f.typ)
	if err := json.Unmarshal(text, decoded.Interface()); err != nil {
		loss := lossBecause("cannot be decoded again: " + err.Error())
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return inPart("."+wrong.Field, loss)
		}
		return loss
	}
	again, err := json.Marshal(decoded.Interface())
	if err != nil {
		return lossBecause("cannot be encoded again: " + err.Error())
	}
	if bytes.Equal(text, again) {
		return nil
	}
	if before, after := jsonValue(text), jsonValue(again); !reflect.DeepEqual(before, after) {
		return inPart(differs(before, after), lossBecause("is another value after it was encoded and decoded"))
	}
	return nil
}

func jsonValue(text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // then the whole value differs
	}
	return v
}

// differs returns the path of the first difference of two decoded JSON texts.
func differs(a, b any) string {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			return ""
		}
		for name, value := range a {
			if other, ok := b[name]; !ok || !reflect.DeepEqual(value, other) {
				return "." + name + differs(value, other)
			}
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return ""
		}
		for i := range a {
			if !reflect.DeepEqual(a[i], b[i]) {
				return fmt.Sprintf("[%d]", i) + differs(a[i], b[i])
			}
		}
	}
	return ""
}

// lostInputError returns the error of a call whose input JSON loses in part.
func lostInputError(err error) error {
	loss, ok := errors.AsType[*encodingLossError](err)
	if !ok {
		return invalid("Input", "cannot be encoded: "+err.Error())
	}
	return invalid("Input"+loss.path, loss.why)
}

// encodeInput returns the JSON of an input, or an error if JSON loses a part of it.
func (o *Operation[In]) encodeInput(input any) ([]byte, error) {
	at, inPlace := input.(valueRef[In])
	if !inPlace {
		in, _ := o.value(input) // a nil interface is the zero In
		at.ptr = &in
	}
	f := o.form
	text, err := json.Marshal(at.ptr)
	if err != nil {
		return nil, lostInputError(err)
	}
	s := getBuffer()
	defer s.release()
	if err := s.checkLossless(reflect.ValueOf(at.ptr).Elem(), f, text); err != nil {
		return nil, lostInputError(err)
	}
	if f.exact {
		return text, nil
	}
	if err := f.checkRoundTrip(text); err != nil {
		return nil, lostInputError(err)
	}
	return text, nil
}

// checkInput returns an error if a part of the input changes when it is encoded and
// decoded. Other losses are found when the fingerprint is computed.
func (o *Operation[In]) checkInput(input any) error {
	if o.form.exact || len(o.fingerprints) > 0 {
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
