package semelhttp

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/semelhttp/internal/wire"
)

// HeaderKey is the request header that carries the caller's key.
const HeaderKey = wire.HeaderKey

// HeaderReplayed is "true" on every response that was answered from the record, and
// absent from all others. Scripts of other origins see it only if the application's
// Access-Control-Expose-Headers names it.
const HeaderReplayed = wire.HeaderReplayed

// keptByDefault are the response headers that describe the created resource and so
// are part of the outcome. Retry-After is not one of them: it is about the time
// when it was written, and on a final refusal it would ask the client to repeat a
// request that can only fail again.
func keptByDefault() []string {
	return []string{
		"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Type", "Etag", "Last-Modified", "Link", "Location", "Vary",
	}
}

// neverKept reports whether a header belongs to one exchange: to its connection,
// its time or its credentials. It accepts any spelling, because net/http sends any.
func neverKept(name string) bool {
	switch name = textproto.CanonicalMIMEHeaderKey(name); name {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Length", "Date",
		"Authentication-Info", "Authorization", "Proxy-Authenticate", "Proxy-Authentication-Info",
		"Proxy-Authorization", "Set-Cookie", "Set-Cookie2", "Www-Authenticate",
		HeaderReplayed:
		return true
	default:
		return strings.HasPrefix(name, http.TrailerPrefix)
	}
}

// headerNames returns the names of an option in their canonical form, each once, or an
// error about one that is refused.
func headerNames(option string, names []string, refused func(canonical string) bool, why string) ([]string, error) {
	var all []string
	for _, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !wire.IsToken(name):
			return nil, &semel.FieldError{Field: option, Reason: "has " + name + ", which is no header name"}
		case refused(canonical):
			return nil, &semel.FieldError{Field: option, Reason: "has " + name + ", which " + why}
		}
		all = append(all, canonical)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// differsBetweenRetries reports whether a request header may differ between retries
// of one request.
func differsBetweenRetries(name string) bool {
	return slices.Contains([]string{HeaderKey, "Authorization", "Cookie", "Date"}, name)
}

// canonicalHeader returns a copy of h in which each name has its canonical spelling:
// net/http sends any.
func canonicalHeader(h http.Header) http.Header {
	h = h.Clone()
	for name, values := range h {
		if canonical := textproto.CanonicalMIMEHeaderKey(name); canonical != name {
			delete(h, name)
			h[canonical] = append(h[canonical], values...)
		}
	}
	return h
}

// keptNames appends to kept the names of the fields of h that are stored: those that allowed has.
// Fields that the Connection or Trailer header names belong to the exchange. A field
// with a nil value, which keeps net/http from guessing a Content-Type, is stored too.
func keptNames(kept []string, h http.Header, allowed []string) []string {
	exchanged := listed(h, "Connection", "Trailer")
	for name := range h {
		if slices.Contains(allowed, name) && !slices.Contains(exchanged, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// noStore reports whether Cache-Control forbids to store the response.
func noStore(h http.Header) bool { return slices.Contains(listed(h, "Cache-Control"), "No-Store") }

// listed returns the elements of headers that are comma-separated lists, in the spelling of
// header names.
func listed(h http.Header, headers ...string) (names []string) {
	for _, header := range headers {
		for _, line := range h[header] {
			for name := range strings.SplitSeq(line, ",") {
				names = append(names, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
			}
		}
	}
	return names
}

// trailers returns the fields of h that are sent after the body of a response whose
// header is sent.
func trailers(sent, h http.Header) http.Header {
	var found http.Header
	announced := listed(sent, "Trailer")
	for name, values := range h {
		if slices.Contains(announced, name) || strings.HasPrefix(name, http.TrailerPrefix) {
			if found == nil {
				found = make(http.Header)
			}
			found[name] = values
		}
	}
	return found
}

const contentLength = "Content-Length"

// maxAutoLength is the length up to which net/http sets Content-Length by itself,
// if the whole body is written before the handler returns. Setting the header then
// would only disturb an outer middleware that changes the body.
const maxAutoLength = 2048

// setLength sets Content-Length, or removes the one that the application has set if
// the response can have none or the server sets it. trailing means that the response
// ends in trailers that the client cannot receive: for such a response the server sets
// no length.
func setLength(h http.Header, status int, body []byte, trailing bool) {
	if hasBody(status) && (trailing || len(body) > maxAutoLength) {
		h[contentLength] = []string{strconv.Itoa(len(body))}
	} else {
		delete(h, contentLength)
	}
}

// hasBody reports whether a response with the status can have a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

func markReplayed(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header()[HeaderReplayed] = []string{"true"}
	}
}
