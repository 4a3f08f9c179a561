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

// fields are the header fields at one moment, in no order.
type fields []field

// snapshot has memory for the fields of an ordinary response.
type snapshot struct {
	fields [4]field
	values [4]string
}

// of returns the current fields of h. Later changes of h do not change them.
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

// fieldsOf returns the current fields of h.
func fieldsOf(h http.Header) fields { return new(snapshot).of(h) }

// values returns the values of a header in exactly this spelling.
func (f fields) values(name string) []string {
	for i := range f {
		if f[i].name == name {
			return f[i].values
		}
	}
	return nil
}

// lines returns the values of a header in any spelling.
func (f fields) lines(canonical string) []string {
	var lines []string
	for i := range f {
		if is(f[i].name, canonical) {
			lines = append(lines, f[i].values...)
		}
	}
	return lines
}

// is reports whether name is a spelling of a header.
func is(name, canonical string) bool {
	return len(name) == len(canonical) && textproto.CanonicalMIMEHeaderKey(name) == canonical
}

// are reports whether h has exactly the fields of f.
func (f fields) are(h http.Header) bool {
	for i := range f {
		values, ok := h[f[i].name]
		if !ok || !slices.Equal(values, f[i].values) {
			return false
		}
	}
	return len(h) == len(f)
}

// replace makes dst have exactly the fields of f, in memory of its own.
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

// trailers returns the fields of h that are sent after the body of a response whose
// header is f; nil if there are none and none were announced.
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

// add adds the fields of f to dst.
func (f fields) add(dst http.Header) {
	for i := range f {
		dst[f[i].name] = f[i].values
	}
}

// sort sorts f by name.
func (f fields) sort() {
	slices.SortFunc(f, func(a, b field) int { return strings.Compare(a.name, b.name) })
}
