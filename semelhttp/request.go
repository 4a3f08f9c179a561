package semelhttp

import (
	"net/http"
	"net/url"
	"unicode/utf8"
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

// The first byte of what a Request appends, which its fingerprint is made of.
const requestForm = 1

// AppendFingerprint appends what tells r from every other request: a byte for the form,
// and then each field after its length, an unsigned varint. It never fails.
func (r Request) AppendFingerprint(b []byte) ([]byte, error) {
	b = append(b, requestForm)
	for _, s := range [...]string{r.Method, r.Route, r.Path, r.Query, r.MediaType} {
		b = appendBytes(b, s)
	}
	return appendBytes(b, r.Body), nil
}

// contentType returns the first of the lines, which net/http has under that name.
func contentType(h http.Header) string {
	if lines := h["Content-Type"]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// requestOf makes in, which is empty, what r is, with that body.
func requestOf(in *Request, r *http.Request, body []byte) {
	in.Method, in.Route, in.Body = r.Method, r.Pattern, body
	in.Path, in.Query = r.URL.EscapedPath(), text(r.URL.RawQuery)
	in.MediaType = text(mediaType(contentType(r.Header)))
}

// text returns s, with its bytes escaped if it is not UTF-8: as JSON they would
// all be the same. The mark before them is in no query and no header.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return "\x00" + url.QueryEscape(s)
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
