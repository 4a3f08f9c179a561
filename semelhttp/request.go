package semelhttp

import (
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Request is the input of an operation whose response is captured. The fingerprint
// covers all of it, so a key cannot be used again with another method, target,
// media type, body, or value of one of the headers that Options.FingerprintHeaders
// names. An operation that compares less says so with its Fingerprints.
type Request struct {
	Method string `json:"method"`
	// Path and Query are what the client sent in its request line, with escapes and
	// in its order, even if http.StripPrefix or a router has changed the request's
	// URL. Bytes that are not UTF-8 are escaped, so that two different requests
	// stay different.
	Path  string `json:"path"`
	Query string `json:"query"`
	// MediaType is the Content-Type with its parameters, in a normal form.
	MediaType string `json:"media_type"`
	// Body is the body as it was sent, still compressed if it was.
	Body []byte `json:"body"`
	// Headers are those of Options.FingerprintHeaders that the request has, by
	// their canonical names, with their values as they were sent.
	Headers map[string][]string `json:"headers,omitempty"`
}

// requestForm is the first byte of what a Request appends. Another form of the
// bytes needs another number.
const requestForm = 2

// AppendFingerprint appends what distinguishes r from every other request: a byte
// for the form, and then each field after its length, an unsigned varint. Headers
// come last, sorted by name, each with the number of its values; a request without
// any appends nothing for them. It never fails.
func (r Request) AppendFingerprint(b []byte) ([]byte, error) {
	b = append(b, requestForm)
	for _, s := range [...]string{r.Method, r.Path, r.Query, r.MediaType} {
		b = appendBytes(b, s)
	}
	b = appendBytes(b, r.Body)
	return appendFields(b, slices.Collect(maps.Keys(r.Headers)), r.Headers), nil
}

// requestOf returns r as an input, with that body and the headers of those names.
func requestOf(r *http.Request, body []byte, names []string) Request {
	path, query := target(r)
	in := Request{Method: r.Method, Path: text(path), Query: text(query), Body: body}
	if lines := r.Header["Content-Type"]; len(lines) > 0 {
		in.MediaType = text(mediaType(lines[0]))
	}
	if len(names) > 0 {
		in.Headers = headersOf(r, names)
	}
	return in
}

// headersOf returns the headers of those names that r has. Host is the name of the
// server that the client requested.
func headersOf(r *http.Request, names []string) map[string][]string {
	found := make(map[string][]string)
	for _, name := range names {
		lines := r.Header[name]
		if name == "Host" {
			lines = []string{r.Host}
		}
		if len(lines) == 0 {
			continue
		}
		values := make([]string, len(lines))
		for i, line := range lines {
			values[i] = text(line)
		}
		found[name] = values
	}
	return found
}

// mediaType returns the normal form of a Content-Type. An invalid Content-Type is
// returned unchanged.
func mediaType(contentType string) string {
	if contentType == "application/json" { // the comparison is faster
		return contentType
	}
	name, params, err := mime.ParseMediaType(contentType)
	if normal := mime.FormatMediaType(name, params); err == nil && normal != "" {
		return normal
	}
	return contentType
}

// target returns the path and the query that the client sent, with escapes and in
// its order. They are taken from the request line, because http.StripPrefix and
// many routers change r.URL. A request that a program has made, and no server has
// read, has no request line; its target is that of r.URL.
func target(r *http.Request) (path, query string) {
	line := r.RequestURI
	switch {
	case line == "":
		return r.URL.EscapedPath(), r.URL.RawQuery
	case line[0] != '/': // the absolute form, which proxies receive
		_, line, _ = strings.Cut(line, "://")
		from := strings.IndexAny(line, "/?")
		if from < 0 {
			return "/", ""
		}
		line = line[from:]
	}
	path, query, _ = strings.Cut(line, "?")
	if path == "" {
		path = "/"
	}
	return path, query
}

// text returns s, with its bytes escaped if it is not UTF-8: JSON would make such
// bytes all the same. No query and no header contains the prefix.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return "\x00" + url.QueryEscape(s)
}
