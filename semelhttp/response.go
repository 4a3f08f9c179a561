package semelhttp

import (
	"encoding/binary"
	"errors"
	"net/http"

	"github.com/semelgo/semel"
)

// Response is a stored response. The probe of an operation that runs behind
// [Middleware] returns one, as [Response.Raw], for an attempt that crashed before
// it could respond.
type Response struct {
	Status int
	Header http.Header
	Body   []byte

	endpoint string // where it was sent, in profiles that distinguish endpoints
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
	kept := make(fields, 0, len(r.Header))
	for name, values := range r.Header {
		if !neverKept(name) {
			kept = append(kept, field{name, values})
		}
	}
	kept.sort()
	a := responseData{status: r.Status, header: kept, body: r.Body}
	return a.append(make([]byte, 0, a.room(r.endpoint)), r.endpoint)
}

// responseData is a response in memory.
type responseData struct {
	status int // zero: there is none
	header fields
	body   []byte
}

// room returns how many bytes append adds at most, if the status is valid.
func (a *responseData) room(endpoint string) int {
	const number = binary.MaxVarintLen32
	n := 1 + 2*number + number + len(a.body) + number + len(endpoint)
	for i := range a.header {
		n += 2*number + len(a.header[i].name)
		for _, value := range a.header[i].values {
			n += number + len(value)
		}
	}
	return n
}

// append appends a in the stored form. Its header is sorted.
func (a *responseData) append(b []byte, endpoint string) []byte {
	if endpoint == "" {
		b = append(b, codecPlain)
	} else {
		b = append(b, codecEndpoint)
	}
	b = binary.AppendUvarint(b, uint64(a.status))
	b = binary.AppendUvarint(b, uint64(len(a.header)))
	for i := range a.header {
		b = appendBytes(b, a.header[i].name)
		b = binary.AppendUvarint(b, uint64(len(a.header[i].values)))
		for _, value := range a.header[i].values {
			b = appendBytes(b, value)
		}
	}
	b = appendBytes(b, a.body)
	if endpoint != "" {
		b = appendBytes(b, endpoint)
	}
	return b
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseResponse reads what [Response.Raw] returned. The body shares raw's memory.
// It allocates at most a small multiple of raw's length, whatever raw says.
func ParseResponse(raw semel.Raw) (*Response, error) {
	a, endpoint, err := parse(raw, new(snapshot), nil)
	if err != nil {
		return nil, err
	}
	r := &Response{Status: a.status, Header: make(http.Header, len(a.header)), Body: a.body, endpoint: endpoint}
	a.header.add(r.Header)
	return r, nil
}

// parse reads a stored response. Its body shares raw's memory, its header uses room
// as far as that suffices, and names that known has are taken from there.
func parse(raw []byte, room *snapshot, known headerFilter) (a responseData, endpoint string, err error) {
	if len(raw) == 0 || raw[0] != codecPlain && raw[0] != codecEndpoint {
		return responseData{}, "", errNotResponse
	}
	d := decoder{rest: raw[1:]}
	a = responseData{status: int(d.number(999)), header: room.fields[:0]}
	values := room.values[:0]
	for range d.count() {
		f, from := field{name: known.name(d.bytes())}, len(values)
		for left := d.count(); left > 0 && !d.bad; left-- {
			values = append(values, string(d.bytes()))
		}
		if len(values) > from {
			f.values = values[from:len(values):len(values)]
		}
		if a.header = append(a.header, f); d.bad {
			break
		}
	}
	a.body = d.bytes()
	if raw[0] == codecEndpoint {
		endpoint = string(d.bytes())
	}
	if d.bad || len(d.rest) != 0 || a.status < http.StatusOK {
		return responseData{}, "", errNotResponse
	}
	return a, endpoint, nil
}

// name returns the name in b.
func (rule headerFilter) name(b []byte) string {
	if known, ok := rule[string(b)]; ok {
		return known
	}
	return string(b)
}

// decoder reads a stored response from the front. After the first error it reads
// nothing more.
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

// count reads the number of elements, each of which takes at least one byte.
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
