// Package errtype finds errors by their type.
package errtype

import "errors"

// Find returns the first error of type E in err's tree, as errors.As finds it.
// From Go 1.26 on, the standard library has it as errors.AsType.
func Find[E error](err error) (E, bool) {
	if err == nil { // without this, each call allocates
		var none E
		return none, false
	}
	var found E
	ok := errors.As(err, &found)
	return found, ok
}
