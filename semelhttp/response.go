package semelhttp

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
)

// Response is a response as it is stored. The probe of an operation that runs
// behind [Middleware] returns one, as [Response.Raw], to answer for an attempt
// that did not live to tell.
type Response struct {
	Status int
	Header http.Header
	Body   []byte

	endpoint string // where it was given, in profiles that tell endpoints apart
}

// The first byte of every stored response. After it come the status, the number
// of headers, of each its name, the number of its values and the values, and
// the body; and, where the first byte says so, the endpoint. Numbers are
// unsigned varints; names, values, the body and the endpoint are preceded by
// their length; names are sorted.
const (
	codecPlain    = 1
	codecEndpoint = 2
)

var errNotResponse = errors.New("semelhttp: the stored result is not a response")

// Raw returns r in the form that is stored, without the headers that are never
// replayed.
func (r Response) Raw() semel.Raw {
	names := slices.Sorted(maps.Keys(r.Header))
	names = slices.DeleteFunc(names, neverKept)
	b := make([]byte, 0, 64+len(r.Body))
	if r.endpoint == "" {
		b = append(b, codecPlain)
	} else {
		b = append(b, codecEndpoint)
	}
	b = binary.AppendUvarint(b, uint64(r.Status))
	b = binary.AppendUvarint(b, uint64(len(names)))
	for _, name := range names {
		b = appendBytes(b, name)
		b = binary.AppendUvarint(b, uint64(len(r.Header[name])))
		for _, value := range r.Header[name] {
			b = appendBytes(b, value)
		}
	}
	b = appendBytes(b, r.Body)
	if r.endpoint != "" {
		b = appendBytes(b, r.endpoint)
	}
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseResponse reads what [Response.Raw] returned. The body shares raw's
// memory. What it allocates is bounded by a small multiple of raw's length,
// whatever raw says.
func ParseResponse(raw semel.Raw) (*Response, error) {
	if len(raw) == 0 || raw[0] != codecPlain && raw[0] != codecEndpoint {
		return nil, errNotResponse
	}
	d := decoder{rest: raw[1:]}
	r := &Response{Status: int(d.number(999)), Header: make(http.Header)}
	for range d.count() {
		name := string(d.bytes())
		values := make([]string, d.count())
		for i := range values {
			values[i] = string(d.bytes())
		}
		if len(values) == 0 {
			values = nil
		}
		r.Header[name] = values
	}
	r.Body = d.bytes()
	if raw[0] == codecEndpoint {
		r.endpoint = string(d.bytes())
	}
	if d.bad || len(d.rest) != 0 || r.Status < http.StatusOK {
		return nil, errNotResponse
	}
	return r, nil
}

// decoder reads a stored response from the front. After the first thing that
// cannot be read it reads nothing more.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number(limit uint64) uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || n > limit {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// count reads a number of things of which each takes at least one byte.
func (d *decoder) count() uint64 { return d.number(uint64(len(d.rest))) }

func (d *decoder) bytes() []byte {
	n := d.count()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}
