package semelhttp

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// errNumber means that no double has exactly the value of a number, so that another
// number would be taken for it.
var errNumber = errors.New("a number has more digits, or is larger, than can be compared")

// numbered returns v with each number in the one spelling of its value, or
// errNumber.
func numbered(v []byte) (jsontext.Value, error) {
	var text bytes.Buffer
	in, out := jsontext.NewDecoder(bytes.NewReader(v)), jsontext.NewEncoder(&text)
	for {
		token, err := in.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return text.Bytes(), nil
		case err != nil:
			return nil, err
		case token.Kind() == '0':
			number, ok := spelling(token.String())
			if !ok {
				return nil, errNumber
			}
			err = out.WriteValue(jsontext.Value(number))
		default:
			err = out.WriteToken(token)
		}
		if err != nil {
			return nil, err
		}
	}
}

// mostDigits is the largest number of digits of an integer that RFC 8785 writes
// without an exponent.
const mostDigits = 21

// spelling returns the form in which a number is compared, and whether there is
// one. An integer that double precision cannot tell from another keeps its digits.
// Any other gets the form of RFC 8785, with an exponent if that has one.
func spelling(number string) (string, bool) {
	integer := !strings.ContainsAny(number, ".eE")
	if integer && len(strings.TrimPrefix(number, "-")) <= mostDigits {
		return number, true
	}
	f, err := strconv.ParseFloat(number, 64) // an error means that it is out of range
	short := strconv.FormatFloat(f, 'e', -1, 64)
	exact := err == nil && decimalOf(number) == decimalOf(short)
	if exact && integer {
		return short, true
	}
	return number, exact || integer
}

// decimal is a number without its sign: the significant digits, and the power of ten of
// the last one. Zero has no digits and the power 0.
type decimal struct {
	digits   string
	exponent int
}

func decimalOf(number string) decimal {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	exponent, _ := strconv.Atoi(power) // 0 without a power; the largest for a power that is out of range
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(fraction)
	if significant = strings.TrimLeft(significant, "0"); significant == "" {
		return decimal{}
	}
	return decimal{significant, exponent}
}
