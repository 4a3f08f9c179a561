package semelhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"unicode/utf8"

	"github.com/semelgo/semel"
)

// Request is the input of an operation whose response is captured. The
// fingerprint covers all of it, so a key cannot be used again with another
// method, target, media type or body; an operation that means less says so with
// its Fingerprints.
type Request struct {
	Method string `json:"method"`
	// Route is the pattern that http.ServeMux matched, if one did.
	Route string `json:"route"`
	// Path and Query are as they were sent, escapes and order included. Bytes
	// that are no text are escaped, so that two of them are never the same.
	Path  string `json:"path"`
	Query string `json:"query"`
	// MediaType is the Content-Type with its parameters, in a normal form.
	MediaType string `json:"media_type"`
	// Body is as it was sent: compressed if it came so.
	Body []byte `json:"body"`
}

func requestOf(r *http.Request, body []byte) Request {
	return Request{
		Method: r.Method, Route: r.Pattern, Path: r.URL.EscapedPath(), Query: text(r.URL.RawQuery),
		MediaType: text(mediaType(r.Header.Get("Content-Type"))), Body: body,
	}
}

// text returns s, with its bytes escaped if it is not UTF-8: as JSON they would
// all be the same. The mark before them is in no query and no header.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return "\x00" + url.QueryEscape(s)
}

func mediaType(contentType string) string {
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType
	}
	if normal := mime.FormatMediaType(name, params); normal != "" {
		return normal
	}
	return contentType
}

// safe reports whether requests of that method have no effect by definition.
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	default:
		return false
	}
}

// readBody reads the body, or no more of it than is allowed.
func (s *settings) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > s.MaxBody {
		return nil, problem(codeBodyTooLarge, "")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.MaxBody))
	if err == nil {
		return body, nil
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, problem(codeBodyTooLarge, "")
	}
	return nil, problem(codeBodyUnreadable, "")
}

// again returns r as the handler gets it: with its own context, and a body that
// was read and can be read once more.
func again(ctx context.Context, r *http.Request, body []byte) *http.Request {
	r = r.WithContext(ctx)
	r.Body = rereadable{bytes.NewReader(body)}
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	return r
}

// rereadable is a body that can be read from its beginning again.
type rereadable struct{ *bytes.Reader }

func (rereadable) Close() error { return nil }

// reread lets r's body be read from its beginning again, if it is one of ours.
func reread(r *http.Request) {
	if body, ok := r.Body.(rereadable); ok {
		_, _ = body.Seek(0, io.SeekStart) // cannot fail
	}
}

// untilRun returns the context for a call that a client asks for. It waits for
// others no longer than the client does, whose context is given; once it runs
// the operation, a client that hangs up changes nothing.
func untilRun(client context.Context) context.Context {
	return semel.WithPatience(context.WithoutCancel(client), client)
}
