package canonical

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// form describes how encoding/json encodes the values of a Go type. It is
// computed once for each type.
type form struct {
	typ       reflect.Type
	marshaled bool // by a method of its own, and not by its kind
	onPointer bool // that method has a pointer receiver
	elem, key *form
	fields    []structField // of a struct, sorted by JSON name
	unwritten []omittedPart // of a struct: fields that JSON omits without a tag
	leavesOut bool          // a struct with a field that a tag omits, or an embedded pointer

	// exact means that decoding an encoded value always gives the same Go value, if
	// no string has invalid UTF-8 and no omitted field is set.
	exact bool
	// complete means that no reachable type has omitted fields.
	complete bool
}

// structField is a struct field that encoding/json encodes.
type structField struct {
	name      string // in JSON
	goName    string
	index     []int
	untagged  uint8 // 1: its name is not in a tag
	omitEmpty bool
	omitZero  bool
	quoted    bool
	form      *form
}

// omittedPart is a struct field that encoding/json does not encode.
type omittedPart struct {
	goName string
	index  []int
	why    string
}

// forms caches forms by reflect.Type. A form depends on its type only.
//
//nolint:gochecknoglobals // see above
var forms sync.Map

// formOf returns the form of t.
func formOf(t reflect.Type) *form {
	if f, ok := forms.Load(t); ok {
		return f.(*form)
	}
	b := formBuilder{}
	f := b.form(t)
	for _, one := range b {
		one.exact = !one.reaches(map[*form]bool{}, (*form).isInexact)
		one.complete = !one.reaches(map[*form]bool{}, func(f *form) bool { return len(f.unwritten) > 0 })
	}
	for t, one := range b { // complete now, so other goroutines may see them
		forms.LoadOrStore(t, one)
	}
	return f
}

// formBuilder holds the forms under construction, because types can be recursive.
type formBuilder map[reflect.Type]*form

func (b formBuilder) form(t reflect.Type) *form {
	if f := b[t]; f != nil {
		return f
	}
	f := &form{typ: t}
	b[t] = f
	if f.marshaled, f.onPointer = marshalerOf(t); f.marshaled {
		return f
	}
	switch t.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Pointer, reflect.Slice, reflect.Array:
		f.elem = b.form(t.Elem())
	case reflect.Map:
		f.key, f.elem = b.form(t.Key()), b.form(t.Elem())
	case reflect.Struct:
		b.structFields(f)
	default:
	}
	return f
}

// marshalerOf reports whether values of t are marshaled by a method. As in encoding/json,
// MarshalJSON comes before MarshalText, and pointers have no method of their own.
func marshalerOf(t reflect.Type) (marshaled, onPointer bool) {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return false, false // the value that it points to decides
	}
	for _, marshaler := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if reflect.PointerTo(t).Implements(marshaler) { // it has the methods of the value, too
			return true, !t.Implements(marshaler)
		}
	}
	return false, false
}

// reaches reports whether f, or a form within it, has a property.
func (f *form) reaches(seen map[*form]bool, property func(*form) bool) bool {
	if f == nil || seen[f] {
		return false
	}
	seen[f] = true
	if property(f) || f.elem.reaches(seen, property) || f.key.reaches(seen, property) {
		return true
	}
	for i := range f.fields {
		if f.fields[i].form.reaches(seen, property) {
			return true
		}
	}
	return false
}

// isInexact reports whether JSON may change a value of f itself, apart from its
// parts.
func (f *form) isInexact() bool {
	if f.marshaled || f.typ == reflect.TypeFor[json.Number]() {
		return true
	}
	switch f.typ.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Interface:
		return true
	case reflect.Pointer: // a pointer to a null is decoded as a nil pointer
		switch f.elem.typ.Kind() { //nolint:exhaustive // the other kinds are alike
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
			return true
		default:
			return false
		}
	case reflect.Struct:
		for _, field := range f.fields {
			if field.isInexact() {
				return true
			}
		}
		return f.leavesOut
	default:
		return false
	}
}

// isInexact reports whether the field's tag may change a value.
func (f *structField) isInexact() bool {
	switch f.form.typ.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return f.omitZero && f.form.typ.NumMethod() > 0 // the type may have IsZero
	default:
		return f.omitEmpty || f.omitZero || f.quoted
	}
}
