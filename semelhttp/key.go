package semelhttp

import (
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/semelgo/semel/store"
)

// HeaderKey is the request header that carries the caller's key.
const HeaderKey = "Idempotency-Key"

// keyOf returns the key of a request, and whether the header is there at all.
// A header that is there and says nothing is malformed, never absent: its
// sender believes to be protected.
func keyOf(h http.Header) (key string, present bool, err error) {
	lines := h.Values(HeaderKey)
	switch len(lines) {
	case 0:
		return "", false, nil
	case 1:
		key, err = ParseKey(lines[0])
		return key, true, err
	default:
		return "", true, malformed("must be sent on exactly one header line")
	}
}

// ParseKey returns the key that one Idempotency-Key header line carries. The
// structured form "abc", with \" and \\ as its escapes, and the raw form abc
// are the same key; parameters of the structured form and whitespace around
// either are ignored. A key is 1 to 255 visible ASCII characters and inner
// spaces, and is never folded or truncated. What is no key is an error that is
// a [*Problem]; it does not repeat the line.
func ParseKey(line string) (string, error) {
	key := strings.Trim(line, " \t")
	if strings.HasPrefix(key, `"`) {
		item, err := httpsfv.UnmarshalItem([]string{key})
		if err != nil {
			return "", malformed(`begins with a quote and is not one structured string, as "abc" is`)
		}
		text, ok := item.Value.(string)
		if !ok {
			return "", malformed("is not a structured string")
		}
		key = text
	}
	if reason := keyReason(key); reason != "" {
		return "", malformed(reason)
	}
	return key, nil
}

// keyReason says why key is none, and nothing when it is one.
func keyReason(key string) string {
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

func malformed(reason string) *Problem {
	p := problem(codeKeyMalformed, "The "+HeaderKey+" header "+reason+".")
	p.Field = HeaderKey
	return p
}
