package semel

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// jsonForm describes how encoding/json encodes the values of a Go type. It is
// computed once for each type.
type jsonForm struct {
	typ       reflect.Type
	marshaler marshalerKind
	onPointer bool // the marshaler's method has a pointer receiver
	elem, key *jsonForm
	fields    []jsonField   // of a struct, sorted by JSON name
	unwritten []omittedPart // of a struct: fields that JSON omits without a tag
	leavesOut bool          // a struct with a field that a tag omits, or an embedded pointer

	// exact means that decoding an encoded value always gives the same Go value, if
	// no string has invalid UTF-8 and no omitted field is set.
	exact bool
	// complete means that no reachable type has omitted fields.
	complete bool
	// indirect means that a copy of a value shares memory with the original, so
	// that a change of one is seen in the other. Strings cannot be changed.
	indirect bool
}

// jsonField is a struct field that encoding/json encodes.
type jsonField struct {
	name      string // in JSON
	goName    string
	index     []int
	tagged    bool
	omitEmpty bool
	omitZero  bool
	quoted    bool
	form      *jsonForm
}

// omittedPart is a struct field that encoding/json does not encode.
type omittedPart struct {
	goName string
	index  []int
	why    string
}

type marshalerKind uint8

const (
	marshalsItself marshalerKind = iota // encoded by its kind
	marshalsJSON
	marshalsText
)

// jsonForms caches forms by reflect.Type. A form depends on its type only.
//
//nolint:gochecknoglobals // see above
var jsonForms sync.Map

// jsonFormOf returns the form of t.
func jsonFormOf(t reflect.Type) *jsonForm {
	if f, ok := jsonForms.Load(t); ok {
		return f.(*jsonForm)
	}
	b := formBuilder{}
	f := b.form(t)
	for _, one := range b {
		one.exact = !one.reaches(map[*jsonForm]bool{}, (*jsonForm).isInexact)
		one.complete = !one.reaches(map[*jsonForm]bool{}, func(f *jsonForm) bool { return len(f.unwritten) > 0 })
		one.indirect = one.reaches(map[*jsonForm]bool{}, (*jsonForm).isIndirect)
	}
	for t, one := range b { // complete now, so other goroutines may see them
		jsonForms.LoadOrStore(t, one)
	}
	return f
}

// formBuilder holds the forms under construction, because types can be recursive.
type formBuilder map[reflect.Type]*jsonForm

func (b formBuilder) form(t reflect.Type) *jsonForm {
	if f := b[t]; f != nil {
		return f
	}
	f := &jsonForm{typ: t}
	b[t] = f
	f.marshaler, f.onPointer = marshalerOf(t)
	if f.marshaler != marshalsItself {
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

// marshalerOf returns how values of t are marshaled. As in encoding/json,
// MarshalJSON comes before MarshalText, and pointers have no method of their own.
func marshalerOf(t reflect.Type) (kind marshalerKind, onPointer bool) {
	p := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer:
		return marshalsItself, false // the value that it points to decides
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return marshalsJSON, false
	case p.Implements(reflect.TypeFor[json.Marshaler]()):
		return marshalsJSON, true
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return marshalsText, false
	case p.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return marshalsText, true
	default:
		return marshalsItself, false
	}
}

// reaches reports whether f, or a form within it, has a property.
func (f *jsonForm) reaches(seen map[*jsonForm]bool, property func(*jsonForm) bool) bool {
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
func (f *jsonForm) isInexact() bool {
	switch {
	case f.marshaler != marshalsItself, f.typ == reflect.TypeFor[json.Number]():
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
func (f *jsonField) isInexact() bool {
	switch f.form.typ.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return f.omitZero && f.form.typ.NumMethod() > 0 // the type may have IsZero
	default:
		return f.omitEmpty || f.omitZero || f.quoted
	}
}

func (f *jsonForm) isIndirect() bool {
	switch f.typ.Kind() { //nolint:exhaustive // the other kinds are alike
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	default:
		return f.marshaler != marshalsItself
	}
}
