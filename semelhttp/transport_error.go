package semelhttp

import (
	"fmt"

	"github.com/semelgo/semel"
)

// UnansweredError says that a call got no response, in all its tries. It is
// semel.ErrOutcomeUnknown when the server may have seen a request with a key:
// then nobody here knows whether it did what it was asked for. Ask again with
// the same key.
type UnansweredError struct {
	// Key is the line of the key that all tries carried: a request that has
	// it in its header is the same call. Empty: there was none. Error does not
	// tell it.
	Key string
	// Tries is how many there were.
	Tries int
	// Sent is false only when no try got as far as a connection: then nothing
	// was asked by this call. Of what others asked with the key it says nothing.
	Sent bool
	// Err is what the last try ended with.
	Err error
}

// Error returns what the last try ended with, and what that means.
func (e *UnansweredError) Error() string {
	if e.unknown() {
		return fmt.Sprintf("semelhttp: outcome unknown after %d tries: %v", e.Tries, e.Err)
	}
	return fmt.Sprintf("semelhttp: no response after %d tries: %v", e.Tries, e.Err)
}

// Unwrap returns the last try's error.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Is reports that a call whose effect is unknown is semel.ErrOutcomeUnknown.
func (e *UnansweredError) Is(target error) bool {
	return target == semel.ErrOutcomeUnknown && e.unknown()
}

func (e *UnansweredError) unknown() bool { return e.Key != "" && e.Sent }
