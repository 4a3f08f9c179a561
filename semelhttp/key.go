package semelhttp

import "github.com/semelgo/semel/semelhttp/internal/wire"

// HeaderKey is the request header that carries the caller's key.
const HeaderKey = wire.HeaderKey

// ParseKey returns the key of one Idempotency-Key header line, in the [Lenient]
// profile. The structured form "abc", with \" and \\ as its escapes, and the raw
// form abc are the same key; parameters of the structured form and whitespace
// around either are ignored. A key is 1 to 255 visible ASCII characters and inner
// spaces, and is never folded or truncated. A key with a comma must be quoted,
// because two header lines that a proxy has joined look the same. Any other line is
// an error that is a [*Problem]; it does not repeat the line.
func ParseKey(line string) (string, error) { return checked(wire.ParseKey(line)) }

// checked returns a key that was read without a reason against it.
func checked(key, reason string) (string, error) {
	if reason != "" {
		return "", malformed(reason)
	}
	return key, nil
}

func malformed(reason string) *Problem {
	return problemOn(HeaderKey, codeKeyMalformed, "The "+HeaderKey+" header "+reason+".")
}
