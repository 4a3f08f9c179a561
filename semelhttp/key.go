package semelhttp

import (
	"strings"

	"github.com/dunglas/httpsfv"

	"github.com/semelgo/semel/store"
)

// HeaderKey is the request header that carries the caller's key.
const HeaderKey = "Idempotency-Key"

// keyOf returns the key in these lines of the header, and whether the header is
// present. A header that is present and empty is malformed, not absent: its sender
// believes to be protected.
func (d *profileRules) keyOf(lines []string) (key string, present bool, err error) {
	switch len(lines) {
	case 0:
		return "", false, nil
	case 1:
		key, err = d.parse(lines[0])
		return key, true, err
	default:
		return "", true, malformed("must be sent on exactly one header line")
	}
}

// ParseKey returns the key of one Idempotency-Key header line, in the [Lenient]
// profile. The structured form "abc", with \" and \\ as its escapes, and the raw
// form abc are the same key; parameters of the structured form and whitespace
// around either are ignored. A key is 1 to 255 visible ASCII characters and inner
// spaces, and is never folded or truncated. A key with a comma must be quoted,
// because two header lines that a proxy has joined look the same. Any other line is
// an error that is a [*Problem]; it does not repeat the line.
func ParseKey(line string) (string, error) {
	switch {
	case isPlainKey(line):
		return line, nil
	case strings.HasPrefix(trimmed(line), `"`):
		return parseString(line)
	case strings.Contains(line, ","):
		return "", malformed("may be two lines that were joined; put a key that has a comma in quotes")
	default:
		return parseRaw(line)
	}
}

// isPlainKey reports whether line is certainly a key in the raw form: it has no
// whitespace, no quotes and no comma.
func isPlainKey(line string) bool {
	for i := range len(line) {
		if c := line[i]; c <= ' ' || c > '~' || c == '"' || c == ',' {
			return false
		}
	}
	return 0 < len(line) && len(line) <= store.MaxKey
}

// parseString returns the key of a line that is one structured string.
func parseString(line string) (string, error) {
	item, err := httpsfv.UnmarshalItem([]string{trimmed(line)})
	if err != nil {
		return "", malformed(`is not one structured string, as "abc" is`)
	}
	key, ok := item.Value.(string)
	if !ok {
		return "", malformed(`is not a structured string, as "abc" is`)
	}
	return checkKey(key)
}

// parseRaw returns the line itself.
func parseRaw(line string) (string, error) { return checkKey(trimmed(line)) }

func trimmed(line string) string { return strings.Trim(line, " \t") }

// checkKey returns key if it is valid.
func checkKey(key string) (string, error) {
	if reason := keyReason(key); reason != "" {
		return "", malformed(reason)
	}
	return key, nil
}

// keyReason returns why key is invalid, or an empty text.
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
