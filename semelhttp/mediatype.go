package semelhttp

import (
	"mime"
	"strings"
)

// mediaType returns the normal form of a Content-Type. An invalid Content-Type is
// returned unchanged.
func mediaType(contentType string) string {
	if contentType == "application/json" || normal(contentType) { // the comparison is faster
		return contentType
	}
	name, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return contentType
	}
	if normal := mime.FormatMediaType(name, params); normal != "" {
		return normal
	}
	return contentType
}

// normal reports whether a Content-Type is certainly in its normal form, as
// programs send it, so that it need not be parsed: a type alone, or with one
// parameter that needs no quotes.
func normal(contentType string) bool {
	full, param, with := strings.Cut(contentType, "; ")
	major, minor, ok := strings.Cut(full, "/")
	if !ok || !plain(major, false) || !plain(minor, false) {
		return false
	}
	if !with {
		return true
	}
	name, value, ok := strings.Cut(param, "=")
	return ok && plain(name, false) && plain(value, true)
}

// plain reports whether s has only letters, digits and the few other characters
// that need no quotes and have no meaning in a name. Upper case is allowed in a
// value only.
func plain(s string, value bool) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '+':
		case value && 'A' <= c && c <= 'Z':
		default:
			return false
		}
	}
	return s != ""
}
