package semelhttp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/semelgo/semel/internal/errtype"
)

// firstRead is the largest buffer before any byte has arrived: a client that
// announces a length may never send the body.
const firstRead = 16 << 10

// readBody reads the body, at most as much as is allowed.
func (s *settings) readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > s.MaxBody {
		return nil, problem(codeBodyTooLarge, "")
	}
	if r.Body == nil {
		return nil, nil
	}
	body := make([]byte, 0, min(uint64(r.ContentLength), firstRead)+1) // so that the end is found without a larger buffer
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case int64(len(body)) > s.MaxBody:
			return nil, problem(codeBodyTooLarge, "")
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			if _, large := errtype.Find[*http.MaxBytesError](err); large {
				return nil, problem(codeBodyTooLarge, "")
			}
			return nil, problem(codeBodyUnreadable, "")
		}
		body = slices.Grow(body, 1)
	}
}

// setBody gives r a body.
func setBody(r *http.Request, body *bodyReader) *http.Request {
	r.Body = body
	r.ContentLength = body.Size()
	r.TransferEncoding = nil
	return r
}

// bodyReader is a body that can be read again from the start.
type bodyReader struct{ bytes.Reader }

// Close does nothing: the body can be read again.
func (*bodyReader) Close() error { return nil }
