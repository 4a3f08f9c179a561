package semelhttp

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
)

// Response is a stored response. The probe of an operation that runs behind
// [Middleware] returns one, as [Response.Raw], for an attempt that crashed before
// it could respond.
type Response struct {
	Status int
	Header http.Header
	Body   []byte

	endpoint string // where the request was sent, or behind Form what was sent; empty: not compared
}

// The first byte of every stored response. After it come the status, the number of
// headers, of each its name, the number of its values and the values, and the body;
// and, if the first byte says so, the endpoint. Numbers are unsigned varints;
// names, values, the body and the endpoint follow their length; names are sorted.
const (
	codecPlain    = 1
	codecEndpoint = 2
)

var errNotResponse = errors.New("semelhttp: the stored result is not a response")

// Raw returns r in the stored form, without the headers that are never replayed.
func (r Response) Raw() semel.Raw {
	names := slices.Collect(maps.Keys(r.Header))
	return r.encode(slices.DeleteFunc(names, neverKept))
}

// encode returns r in the stored form, with the headers of those names.
func (r *Response) encode(names []string) semel.Raw {
	b := append(make([]byte, 0, len(r.Body)+128), codecPlain)
	b = binary.AppendUvarint(b, uint64(r.Status))
	b = binary.AppendUvarint(b, uint64(len(names)))
	b = appendFields(b, names, r.Header)
	b = appendBytes(b, r.Body)
	if r.endpoint != "" {
		b[0] = codecEndpoint
		b = appendBytes(b, r.endpoint)
	}
	return b
}

// appendFields appends the fields of h with those names, sorted by name: of each the
// name, the number of its values and the values.
func appendFields(b []byte, names []string, h map[string][]string) []byte {
	slices.Sort(names)
	for _, name := range names {
		b = appendBytes(b, name)
		b = binary.AppendUvarint(b, uint64(len(h[name])))
		for _, value := range h[name] {
			b = appendBytes(b, value)
		}
	}
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseResponse reads what [Response.Raw] returned. The body shares raw's memory.
// It allocates at most a small multiple of raw's length, regardless of what raw says.
func ParseResponse(raw semel.Raw) (*Response, error) {
	if len(raw) == 0 || raw[0] != codecPlain && raw[0] != codecEndpoint {
		return nil, errNotResponse
	}
	d := decoder{rest: raw[1:]}
	r := &Response{Status: int(d.number()), Header: make(http.Header)}
	for left := d.count(); left > 0 && !d.bad; left-- {
		name, values := string(d.bytes()), []string(nil)
		for more := d.count(); more > 0 && !d.bad; more-- {
			values = append(values, string(d.bytes()))
		}
		r.Header[name] = values
	}
	r.Body = d.bytes()
	if raw[0] == codecEndpoint {
		r.endpoint = string(d.bytes())
	}
	if d.bad || len(d.rest) != 0 || r.Status < http.StatusOK || r.Status > 999 {
		return nil, errNotResponse
	}
	return r, nil
}

// decoder reads a stored response from the front. After an error bad is true, and what it
// reads has no meaning.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	d.bad = d.bad || size <= 0
	d.rest = d.rest[max(size, 0):]
	return n
}

// count reads the number of elements, each of which takes at least one byte.
func (d *decoder) count() uint64 {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}
