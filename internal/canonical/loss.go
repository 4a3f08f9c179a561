package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/semelgo/semel/internal/errtype"
)

// LossError says which part of a value JSON loses.
type LossError struct {
	Path string // Go names of fields, with a leading dot, and indexes
	Why  string
}

// Error returns the part and the reason.
func (e *LossError) Error() string { return e.Path + " " + e.Why }

// inPart returns err for a part of the value.
func inPart(part string, err error) error {
	if loss, ok := errtype.Find[*LossError](err); ok {
		loss.Path = part + loss.Path
		return loss
	}
	return err
}

func lossBecause(why string) error { return &LossError{Why: why} }

// Check returns a *LossError if a part of v, whose JSON is text, cannot be decoded
// again as it was. exact means that decoding text gives v. It appends to scratch,
// and returns it for the next call.
func Check(v reflect.Value, text, scratch []byte) (exact bool, grown []byte, err error) {
	f := formOf(v.Type())
	if !f.exact || !f.complete || mayHaveReplaced(text) {
		if scratch, err = appendForm(scratch[:0], v, f, 0); err != nil {
			return false, scratch, err
		}
	}
	if f.exact {
		return true, scratch, nil
	}
	return false, scratch, f.checkRoundTrip(text)
}

// IsExact reports whether decoding the JSON of any value of t gives the same value,
// if no string has invalid UTF-8 and no omitted field is set.
func IsExact(t reflect.Type) bool { return formOf(t).exact }

// mayHaveReplaced reports whether text has the character that encoding/json writes
// in place of invalid UTF-8, escaped or not. A valid string may contain it, too.
func mayHaveReplaced(text []byte) bool {
	return bytes.Contains(text, []byte(`\ufffd`)) || bytes.Contains(text, []byte("\ufffd"))
}

// checkRoundTrip checks that text can be decoded, and that the decoded value has
// the same JSON.
func (f *form) checkRoundTrip(text []byte) error {
	decoded := reflect.New(f.typ)
	if err := json.Unmarshal(text, decoded.Interface()); err != nil {
		loss := lossBecause("cannot be decoded again: " + err.Error())
		if wrong, ok := errtype.Find[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
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
