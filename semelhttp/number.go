package semelhttp

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// errNumber says that a number has no double of its own: another number would be
// taken for it.
var errNumber = errors.New("a number has more digits, or is larger, than can be compared")

// comparableNumbers reports, as an error, a number in v that double precision
// cannot tell from another. Integers are compared digit by digit and are always fine.
func comparableNumbers(v []byte) error {
	in := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		token, err := in.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if token.Kind() == '0' && !exact(token.String()) {
			return errNumber
		}
	}
}

// exact reports whether the shortest way to write the double nearest to a number
// is that number.
func exact(number string) bool {
	if !strings.ContainsAny(number, ".eE") {
		return true
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil { // out of range
		return false
	}
	digits, exponent, ok := decimal(number)
	short, shortExponent, _ := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return ok && digits == short && exponent == shortExponent
}

// decimal takes a number apart into its significant digits and the power of ten
// of the last of them, without its sign. Zero has no digits and the power 0.
func decimal(number string) (digits string, exponent int, ok bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return "", 0, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(fraction)
	if significant = strings.TrimLeft(significant, "0"); significant == "" {
		return "", 0, true
	}
	return significant, exponent, true
}
