package semelhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// firstRead is the largest buffer before any byte has arrived: a client that
// announces a length may never send the body.
const firstRead = 16 << 10

// readBody reads the body, at most as much as is allowed.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.MaxBody {
		return nil, problem(codeBodyTooLarge, "")
	}
	if r.Body == nil {
		return nil, nil
	}
	expected := r.ContentLength
	if expected < 0 {
		expected = 511
	}
	body := make([]byte, 0, min(expected, firstRead)+1) // so that the end is found without a larger buffer
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch _, large := errors.AsType[*http.MaxBytesError](err); {
		case int64(len(body)) > s.MaxBody:
			tooLarge(w)
			return nil, problem(codeBodyTooLarge, "")
		case errors.Is(err, io.EOF):
			return body, nil
		case large:
			return nil, problem(codeBodyTooLarge, "")
		case err != nil:
			return nil, problem(codeBodyUnreadable, "")
		}
		if len(body) == cap(body) {
			body = slices.Grow(body, 1)
		}
	}
}

// tooLarge tells the server not to read the rest of the body.
func tooLarge(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0).Read(make([]byte, 1))
}

// withBody returns r with another context and with a body that can be read again
// from the start.
func withBody(ctx context.Context, r *http.Request, body []byte) *http.Request {
	text := new(bodyReader)
	text.Reset(body)
	return setBody(r.WithContext(ctx), text)
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
