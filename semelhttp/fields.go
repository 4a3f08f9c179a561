package semelhttp

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// field is a header field: a name and its values. Nil values keep net/http from
// adding the field itself.
type field struct {
	name   string
	values []string
}

// fields are a header as it was at one moment, in no order.
type fields []field

// snapshot is room for the fields of an ordinary response.
type snapshot struct {
	fields [4]field
	values [4]string
}

// of returns what h holds now. What is done to h later does not change it.
func (s *snapshot) of(h http.Header) fields {
	all, values := fields(s.fields[:0]), s.values[:0]
	for name, lines := range h {
		if len(name) == len(HeaderReplayed) && strings.EqualFold(name, HeaderReplayed) {
			continue
		}
		from := len(values)
		values = append(values, lines...)
		f := field{name: name}
		if lines != nil {
			f.values = values[from:len(values):len(values)]
		}
		all = append(all, f)
	}
	return all
}

// fieldsOf returns what h holds now.
func fieldsOf(h http.Header) fields { return new(snapshot).of(h) }

// values returns those of a header in exactly that spelling.
func (f fields) values(name string) []string {
	for i := range f {
		if f[i].name == name {
			return f[i].values
		}
	}
	return nil
}

// lines returns the values that there are for a header in any spelling.
func (f fields) lines(canonical string) []string {
	var lines []string
	for i := range f {
		if is(f[i].name, canonical) {
			lines = append(lines, f[i].values...)
		}
	}
	return lines
}

// is reports whether name spells a header.
func is(name, canonical string) bool {
	return len(name) == len(canonical) && textproto.CanonicalMIMEHeaderKey(name) == canonical
}

// are reports whether h holds exactly what f holds.
func (f fields) are(h http.Header) bool {
	for i := range f {
		values, ok := h[f[i].name]
		if !ok || !slices.Equal(values, f[i].values) {
			return false
		}
	}
	return len(h) == len(f)
}

// replace makes dst hold exactly what f holds, in memory of its own.
func (f fields) replace(dst http.Header) {
	clear(dst)
	for i := range f {
		dst[f[i].name] = slices.Clone(f[i].values)
	}
}

// trailing reports whether f announces trailers, or has some.
func (f fields) trailing() bool {
	for i := range f {
		if name := f[i].name; name == "Trailer" && len(f[i].values) > 0 || strings.HasPrefix(name, http.TrailerPrefix) {
			return true
		}
	}
	return false
}

// trailers are what h holds to be sent after the body of a response whose header is
// f; nil if there are none, and none were announced.
func (f fields) trailers(h http.Header) http.Header {
	announced := listed(f.values("Trailer"))
	set := make(http.Header)
	for name, values := range h {
		if slices.Contains(announced, name) || strings.HasPrefix(name, http.TrailerPrefix) {
			set[name] = values
		}
	}
	if len(set)+len(announced) == 0 {
		return nil
	}
	return set
}

// add puts what f holds into dst.
func (f fields) add(dst http.Header) {
	for i := range f {
		dst[f[i].name] = f[i].values
	}
}

// sort brings f into the order of the names.
func (f fields) sort() {
	slices.SortFunc(f, func(a, b field) int { return strings.Compare(a.name, b.name) })
}
