// Package wire has what the server and the client of package semelhttp must spell in
// the same way: headers, keys and the codes of errors that a retry can help against.
package wire

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/semelgo/semel/store"
)

const (
	// HeaderKey is the request header with the caller's key.
	HeaderKey = "Idempotency-Key"
	// HeaderReplayed is "true" on a response that was answered from the record.
	HeaderReplayed = "Idempotent-Replayed"
	// CodeInProgress is the code of the problem while another request with the key runs.
	CodeInProgress = "in_progress"
	// StripeKeyInUse is CodeInProgress in Stripe's error object.
	StripeKeyInUse = "idempotency_key_in_use"
)

// Safe reports whether requests of that method have no effect by definition. The
// zero value is GET, as in a client's request.
func Safe(method string) bool {
	return slices.Contains([]string{"", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, method)
}

// IsToken reports whether s can be the name of a header.
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// ParseKey returns the key of a header line in either form: "abc" and abc are the same
// key. Parameters of the structured form and whitespace around either are ignored. A key
// is 1 to 255 visible ASCII characters and inner spaces, and is never folded or truncated.
// A key with a comma must be quoted, because two header lines that a proxy has joined look
// the same. If the line has no valid key, reason says why, without repeating it.
func ParseKey(line string) (key, reason string) {
	switch line = strings.Trim(line, blanks); {
	case strings.HasPrefix(line, `"`):
		return ParseString(line)
	case strings.Contains(line, ","):
		return "", "may be two lines that were joined; put a key that has a comma in quotes"
	default:
		return line, KeyReason(line)
	}
}

// ParseString returns the key of a line that is one structured string.
func ParseString(line string) (key, reason string) {
	item, err := httpsfv.UnmarshalItem([]string{strings.Trim(line, blanks)})
	if err != nil {
		return "", `is not one structured string, as "abc" is`
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", `is not a structured string, as "abc" is`
	}
	return key, KeyReason(key)
}

// ParseRaw returns the line itself.
func ParseRaw(line string) (key, reason string) {
	key = strings.Trim(line, blanks)
	return key, KeyReason(key)
}

const blanks = " \t"

// FormatKey returns a valid key as a structured string.
func FormatKey(key string) (string, error) { return httpsfv.Marshal(httpsfv.NewItem(key)) }

// KeyReason returns why a key is invalid, or an empty text.
func KeyReason(key string) string {
	if key == "" {
		return "is empty"
	}
	if len(key) > store.MaxKey {
		return "is longer than 255 characters"
	}
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return "has a character that is not visible ASCII"
		}
	}
	if key[0] == ' ' || key[len(key)-1] == ' ' {
		return "begins or ends with a space inside its quotes"
	}
	return ""
}
