// Package errtype finds errors by their type, and reads errors of types that it does not
// import.
package errtype

import (
	"errors"
	"reflect"
)

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

// Field returns the first number other than zero in a field with one of the names, of
// err or an error that it wraps; zero if there is none. Drivers whose errors have no
// methods keep their codes in fields.
func Field(err error, names ...string) int {
	for ; err != nil; err = errors.Unwrap(err) {
		v := reflect.Indirect(reflect.ValueOf(err))
		if v.Kind() != reflect.Struct {
			continue
		}
		for _, name := range names {
			if f, ok := v.Type().FieldByName(name); !ok || len(f.Index) != 1 {
				continue // an embedded pointer can be nil
			}
			switch f := v.FieldByName(name); {
			case f.CanInt() && f.Int() != 0:
				return int(f.Int())
			case f.CanUint() && f.Uint() != 0:
				return int(f.Uint())
			}
		}
	}
	return 0
}
