package canonical

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// structFields finds the fields of a struct that encoding/json encodes, with
// promoted fields of embedded structs, and the fields that it omits.
func (b formBuilder) structFields(f *form) {
	var found []structField
	visited := map[reflect.Type]bool{}
	level := []structField{{form: f}}
	for len(level) > 0 { // one level of embedding after the other
		var deeper []structField
		for _, at := range level {
			t := at.form.typ
			if visited[t] {
				continue
			}
			visited[t] = true
			for i := range t.NumField() {
				one, embedded, ok := b.field(f, t.Field(i), append(slices.Clip(at.index), i))
				switch {
				case embedded:
					deeper = append(deeper, one)
				case ok:
					found = append(found, one)
				}
			}
		}
		level = deeper
	}
	f.choose(found)
}

// field describes one struct field: an embedded struct whose fields are promoted,
// an encoded field, or neither.
func (b formBuilder) field(f *form, field reflect.StructField, index []int) (one structField, embedded, ok bool) {
	tag := field.Tag.Get("json")
	if tag == "-" || field.Name == "_" {
		f.leavesOut = true
		return one, false, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	inner := field.Type
	if inner.Kind() == reflect.Pointer && inner.Name() == "" {
		inner = inner.Elem()
	}
	isStruct := inner.Kind() == reflect.Struct
	if field.Anonymous && inner != field.Type {
		f.leavesOut = true // a pointer to a struct whose fields are all omitted is decoded as nil
	}
	if !field.IsExported() && (!field.Anonymous || !isStruct) {
		if field.Type.Size() > 0 {
			f.unwritten = append(f.unwritten, omittedPart{field.Name, index, "is not exported, so JSON does not contain it"})
		}
		return one, false, false
	}
	if field.Anonymous && name == "" && isStruct {
		return structField{index: index, form: &form{typ: inner}}, true, false
	}
	one = structField{name: cmp.Or(name, field.Name), goName: field.Name, index: index, form: b.form(field.Type)}
	if name == "" {
		one.untagged = 1
	}
	for option := range strings.SplitSeq(options, ",") {
		one.omitEmpty = one.omitEmpty || option == "omitempty"
		one.omitZero = one.omitZero || option == "omitzero"
		one.quoted = one.quoted || option == "string"
	}
	return one, false, true
}

// choose keeps, of fields with the same JSON name, the one that encoding/json
// encodes: the least deeply embedded, and at the same depth the one with a name in
// its tag. If that does not leave exactly one, none is encoded.
func (f *form) choose(found []structField) {
	slices.SortStableFunc(found, func(a, b structField) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(len(a.index), len(b.index)), cmp.Compare(a.untagged, b.untagged))
	})
	for len(found) > 0 {
		n := 1
		for n < len(found) && found[n].name == found[0].name {
			n++
		}
		same := found[:n]
		found = found[n:]
		hidden := same[1:]
		if n > 1 && len(same[0].index) == len(same[1].index) && same[0].untagged == same[1].untagged {
			hidden = same
		} else {
			f.fields = append(f.fields, same[0])
		}
		for _, h := range hidden {
			f.unwritten = append(f.unwritten, omittedPart{h.goName, h.index, "has the JSON name of another field, so JSON does not contain it"})
		}
	}
}

// validName reports whether encoding/json accepts a name in a tag.
func validName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return name != ""
}
