package semelhttp

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// errNumber means that no double has exactly the value of a number, so that another
// number would be taken for it.
const errNumber = bodyError("has a number with more digits, or larger, than can be compared")

// mostDigits is the largest number of digits of an integer that RFC 8785 writes
// without an exponent.
const mostDigits = 21

// spell writes a number in the form in which it is compared, or returns errNumber if there
// is none. An integer that double precision cannot tell from another keeps its digits.
// Any other gets the form of RFC 8785, with an exponent if that has one.
func spell(out *jsontext.Encoder, text jsontext.Value) error {
	number := string(text)
	integer := !strings.ContainsAny(number, ".eE")
	if integer && len(strings.TrimPrefix(number, "-")) <= mostDigits {
		return out.WriteValue(text)
	}
	f, err := strconv.ParseFloat(number, 64) // an error means that it is out of range
	short := strconv.FormatFloat(f, 'e', -1, 64)
	switch exact := err == nil && decimalOf(number) == decimalOf(short); {
	case exact && integer:
		return out.WriteValue(jsontext.Value(short))
	case exact || integer:
		return out.WriteValue(text)
	default:
		return errNumber
	}
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
