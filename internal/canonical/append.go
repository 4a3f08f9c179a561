package canonical

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

const notUTF8 = "is not valid UTF-8"

// maxDepth limits the nesting of a value. A value that contains itself has no
// JSON.
const maxDepth = 1000

// Append appends the canonical form of v.
func Append(b []byte, v any) ([]byte, error) {
	if v == nil {
		return append(b, "null"...), nil
	}
	value := reflect.ValueOf(v)
	return appendForm(b, value, formOf(value.Type()), 0)
}

// appendForm appends the canonical form of v, a value of f's type.
func appendForm(b []byte, v reflect.Value, f *form, depth int) ([]byte, error) {
	if depth > maxDepth {
		return b, lossBecause("is nested too deeply, or contains itself")
	}
	if f.marshaled {
		return appendMarshaled(b, v, f)
	}
	switch v.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case reflect.Float32, reflect.Float64:
		if n := v.Float(); math.IsNaN(n) || math.IsInf(n, 0) {
			return b, lossBecause("is not a number that JSON has")
		}
		return strconv.AppendFloat(b, v.Float(), 'g', -1, v.Type().Bits()), nil
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Pointer, reflect.Interface:
		return appendPointed(b, v, f, depth)
	case reflect.Struct:
		return appendStruct(b, v, f, depth)
	case reflect.Map:
		return appendMap(b, v, f, depth)
	case reflect.Slice, reflect.Array:
		return appendList(b, v, f, depth)
	default:
		return b, lossBecause("is a " + v.Kind().String() + ", which JSON has no form for")
	}
}

func appendPointed(b []byte, v reflect.Value, f *form, depth int) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	inner := f.elem
	if inner == nil { // an interface
		inner = formOf(v.Elem().Type())
	}
	return appendForm(b, v.Elem(), inner, depth+1)
}

// appendText appends s in quotes.
func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return b, lossBecause(notUTF8)
	}
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"'), nil
}

// appendMarshaled appends the result of the type's own MarshalJSON or MarshalText,
// in the form that encoding/json gives it.
func appendMarshaled(b []byte, v reflect.Value, f *form) ([]byte, error) {
	if f.onPointer {
		if !v.CanAddr() {
			place := reflect.New(f.typ)
			place.Elem().Set(v)
			v = place.Elem()
		}
		v = v.Addr()
	}
	text, err := json.Marshal(v.Interface())
	switch {
	case err != nil:
		return b, err
	case !utf8.Valid(text):
		return b, lossBecause(notUTF8)
	}
	return append(b, text...), nil
}

func appendStruct(b []byte, v reflect.Value, f *form, depth int) ([]byte, error) {
	for _, part := range f.unwritten {
		if at, ok := fieldAt(v, part.index); ok && !at.IsZero() {
			return b, inPart("."+part.goName, lossBecause(part.why))
		}
	}
	b = append(b, '{')
	first := true
	for i := range f.fields {
		field := &f.fields[i]
		at, ok := fieldAt(v, field.index)
		if !ok || at.IsZero() || field.omitEmpty && isEmpty(at) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), field.name...), '"', ':')
		var err error
		if b, err = appendForm(b, at, field.form, depth+1); err != nil {
			return b, inPart("."+field.goName, err)
		}
	}
	return append(b, '}'), nil
}

// fieldAt returns a field of v, which may be promoted from an embedded struct. It
// returns false if the embedded pointer is nil.
func fieldAt(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, true
}

// isEmpty reports whether encoding/json omits v because of omitempty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Float32, reflect.Float64:
		return v.Float() == 0
	default:
		return false // structs are never empty
	}
}

func appendMap(b []byte, v reflect.Value, f *form, depth int) ([]byte, error) {
	if v.IsNil() {
		return append(b, "null"...), nil
	}
	type entry struct{ key, value []byte }
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		var e entry
		var err error
		if e.key, err = appendForm(nil, it.Key(), f.key, depth+1); err != nil {
			return b, inPart("[a key]", err)
		}
		if e.value, err = appendForm(nil, it.Value(), f.elem, depth+1); err != nil {
			return b, inPart("[...]", err) // the key may be a secret
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	b = append(b, '{')
	for i, e := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, e.key...), ':'), e.value...)
	}
	return append(b, '}'), nil
}

func appendList(b []byte, v reflect.Value, f *form, depth int) ([]byte, error) {
	if v.Kind() == reflect.Slice {
		switch {
		case v.IsNil():
			return append(b, "null"...), nil
		case f.elem.typ.Kind() == reflect.Uint8 && !f.elem.marshaled:
			return append(base64.StdEncoding.AppendEncode(append(b, '"'), v.Bytes()), '"'), nil
		}
	}
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendForm(b, v.Index(i), f.elem, depth+1); err != nil {
			return b, inPart(fmt.Sprintf("[%d]", i), err)
		}
	}
	return append(b, ']'), nil
}
