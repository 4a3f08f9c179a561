package semelhttp

import (
	"mime"
	"strings"
)

// mediaType returns the normal form of a Content-Type, or what is no Content-Type
// as it is.
func mediaType(contentType string) string {
	if contentType == "application/json" || normal(contentType) { // the first is quicker
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

// normal reports whether a Content-Type is surely in its normal form. Those that
// programs send are, so that they need not be taken apart: a type alone, or with
// one parameter that needs no quotes.
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

// plain reports whether s is of letters, digits and the few other characters that
// need no quotes and mean nothing in a name. Only a value is as it is in upper case.
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
