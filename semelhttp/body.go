package semelhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
)

// readBody reads the body to the end of into, or no more of it than is allowed.
// What it returns has into's memory where that was enough.
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

// firstRead is how much room there is at most before anything has come: who says
// that much will come need not send it.
const firstRead = 16 << 10

// readUpTo appends to b, which is empty, what r has, until there is more than most
// bytes of it. It expects as many as hint.
func readUpTo(r io.Reader, b []byte, hint, most int64) ([]byte, error) {
	if hint < 0 {
		hint = 511
	}
	room := int(min(hint, firstRead)) + 1 // so that the end is seen without more room
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
		case err == io.EOF, errors.Is(err, io.EOF): // the first is quicker
			return b, nil
		default:
			return nil, err
		}
	}
	return b, nil
}

// tooLarge lets the server know that what is left of the body is not to be read.
func tooLarge(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0).Read(make([]byte, 1))
}

// again returns r as its next reader gets it: with its own context, and a body
// that was read and can be read once more.
func again(ctx context.Context, r *http.Request, body []byte) *http.Request {
	text := new(rereadable)
	text.Reset(body)
	return reading(r.WithContext(ctx), text)
}

// reading gives r a body.
func reading(r *http.Request, body *rereadable) *http.Request {
	r.Body = body
	r.ContentLength = body.Size()
	r.TransferEncoding = nil
	return r
}

// rereadable is a body that can be read from its beginning again.
type rereadable struct{ bytes.Reader }

// Close does nothing: what was read can be read on.
func (*rereadable) Close() error { return nil }

// reread lets r's body be read from its beginning again, if it is one of ours.
func reread(r *http.Request) {
	if body, ok := r.Body.(*rereadable); ok {
		_, _ = body.Seek(0, io.SeekStart) // cannot fail
	}
}
