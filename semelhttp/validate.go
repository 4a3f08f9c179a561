package semelhttp

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// checkedRequest is a request that may run: its scope, its key and its body.
type checkedRequest struct {
	scope   semel.Scope
	key     string
	unkeyed bool // key is random, because the request has none and may run without one
	body    []byte
}

// validate checks what can be checked without the store: the syntax of the key, then
// the scope, and last the body.
func (s *settings) validate(r *http.Request) (in checkedRequest, err error) {
	if s.KeyFunc == nil {
		if in.key, err = s.headerKey(r.Header[HeaderKey]); err != nil {
			return in, err
		}
	}
	if in.scope, err = s.ScopeFunc(r); err != nil {
		return in, cmp.Or(problemIn(err), problem(codeUnauthenticated, ""))
	}
	if in.scope.Bytes() == "" {
		return in, problem(codeUnauthenticated, "") // a user who is not signed in has no name
	}
	if in.body, err = s.readBody(r); err != nil {
		return in, err
	}
	if s.KeyFunc != nil {
		in.key, err = s.fieldKey(r, &in)
	}
	if in.key == "" {
		in.key, in.unkeyed = rand.Text(), true
	}
	return in, err
}

// request returns r as its next reader receives it.
func (in *checkedRequest) request(r *http.Request) *http.Request {
	body := new(bodyReader)
	body.Reset(in.body)
	return setBody(r.WithContext(r.Context()), body)
}

// headerKey returns the key in these lines of the header. Without lines there is none,
// if that is allowed. A header that is present and empty is malformed, not absent: its
// sender believes to be protected.
func (s *settings) headerKey(lines []string) (string, error) {
	switch {
	case len(lines) == 0 && s.Optional:
		return "", nil
	case len(lines) == 0:
		return "", problemOn(HeaderKey, codeKeyMissing, "")
	case len(lines) > 1:
		return "", malformed("must be sent on exactly one header line")
	}
	key, reason := s.parse(lines[0])
	if reason != "" {
		return "", malformed(reason)
	}
	return key, nil
}

func malformed(reason string) *Problem {
	return problemOn(HeaderKey, codeKeyMalformed, "The "+HeaderKey+" header "+reason+".")
}

// fieldKey returns the key that KeyFunc finds. If that is allowed, there may be
// none.
func (s *settings) fieldKey(r *http.Request, in *checkedRequest) (string, error) {
	const invalid = "The key in the request is not one of 1 to 255 bytes."
	key, err := s.KeyFunc(in.request(r), in.body)
	switch {
	case err != nil:
		return "", cmp.Or(problemIn(err), problem(codeKeyMalformed, invalid))
	case len(key) > store.MaxKey:
		return "", problem(codeKeyMalformed, invalid)
	case key == "" && !s.Optional:
		return "", problem(codeKeyMissing, "The request carries no key, and this operation does not run without one. Nothing was run.")
	default:
		return key, nil
	}
}

// problemIn returns the [Problem] in err, which the application chose, or that of a body
// that an outer middleware limits, or nil.
func problemIn(err error) *Problem {
	if own, ok := errtype.Find[*Problem](err); ok {
		return own
	}
	if _, large := errtype.Find[*http.MaxBytesError](err); large {
		return problem(codeBodyTooLarge, "")
	}
	return nil
}

// reauthorize asks Options.Reauthorize whether the sender of r may have the result of a
// call, if that is a stored one: a result, a failure or a tombstone.
func (s *settings) reauthorize(r *http.Request, in *checkedRequest, replayed bool, err error) error {
	if s.Reauthorize == nil || !replayed && (err == nil || !semel.Replayed(err)) {
		return nil
	}
	if err := s.Reauthorize(in.request(r)); err != nil {
		return cmp.Or(problemIn(err), problem(codeForbidden, ""))
	}
	return nil
}

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
			return nil, cmp.Or(problemIn(err), problem(codeBodyUnreadable, ""))
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
