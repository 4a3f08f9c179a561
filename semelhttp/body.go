package semelhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// readBody reads the body into the memory of into, at most as much as is allowed.
// The result shares that memory if it was large enough.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request, into []byte) ([]byte, error) {
	if r.ContentLength > s.MaxBody {
		return nil, problem(codeBodyTooLarge, "")
	}
	if r.Body == nil {
		return into, nil
	}
	body, err := readUpTo(r.Body, into, r.ContentLength, s.MaxBody)
	if err == nil && int64(len(body)) <= s.MaxBody {
		return body, nil
	}
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case err != nil && large:
		return nil, problem(codeBodyTooLarge, "")
	case err != nil:
		return nil, problem(codeBodyUnreadable, "")
	default:
		tooLarge(w)
		return nil, problem(codeBodyTooLarge, "")
	}
}

// firstRead is the largest buffer before any byte has arrived: a client that
// announces a length may never send the body.
const firstRead = 16 << 10

// readUpTo appends the bytes of r to b, which is empty, until the end or until
// there are more than most. It expects hint bytes.
func readUpTo(r io.Reader, b []byte, hint, most int64) ([]byte, error) {
	if hint < 0 {
		hint = 511
	}
	room := int(min(hint, firstRead)) + 1 // so that the end is found without a larger buffer
	if cap(b) < room {
		b = make([]byte, 0, room)
	}
	for int64(len(b)) <= most {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == nil:
		case err == io.EOF, errors.Is(err, io.EOF): // the comparison is faster
			return b, nil
		default:
			return nil, err
		}
	}
	return b, nil
}

// tooLarge tells the server not to read the rest of the body.
func tooLarge(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0).Read(make([]byte, 1))
}

// withBody returns r with another context and with a body that can be read again
// from the start.
func withBody(ctx context.Context, r *http.Request, body []byte) *http.Request {
	text := new(rereadable)
	text.Reset(body)
	return setBody(r.WithContext(ctx), text)
}

// setBody gives r a body.
func setBody(r *http.Request, body *rereadable) *http.Request {
	r.Body = body
	r.ContentLength = body.Size()
	r.TransferEncoding = nil
	return r
}

// rereadable is a body that can be read again from the start.
type rereadable struct{ bytes.Reader }

// Close does nothing: the body can be read again.
func (*rereadable) Close() error { return nil }

// rewindBody makes r's body readable from the start, if it is a rereadable.
func rewindBody(r *http.Request) {
	if body, ok := r.Body.(*rereadable); ok {
		_, _ = body.Seek(0, io.SeekStart) // cannot fail
	}
}
