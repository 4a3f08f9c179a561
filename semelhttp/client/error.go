package client

import (
	"fmt"

	"github.com/semelgo/semel"
)

// UnansweredError means that a call got no response in all its tries. It is
// semel.ErrOutcomeUnknown if the server may have received a request with a key: it
// is then unknown whether the server has executed it. Retry with the same key.
type UnansweredError struct {
	// Key is the key's header line, which all tries had: a request with this line
	// in its header is the same call. Empty: there was none. Error does not show
	// it.
	Key string
	// Tries is the number of tries.
	Tries int
	// Sent is false only if no try got a connection: then this call has not reached
	// the server. Other calls with the same key may have.
	Sent bool
	// Err is the error of the last try.
	Err error
}

// Error returns the error of the last try, and what that means.
func (e *UnansweredError) Error() string {
	if e.unknown() {
		return fmt.Sprintf("semelhttp/client: outcome unknown after %d tries: %v", e.Tries, e.Err)
	}
	return fmt.Sprintf("semelhttp/client: no response after %d tries: %v", e.Tries, e.Err)
}

// Unwrap returns the last try's error.
func (e *UnansweredError) Unwrap() error { return e.Err }

// Is reports that a call whose effect is unknown is semel.ErrOutcomeUnknown.
func (e *UnansweredError) Is(target error) bool {
	return target == semel.ErrOutcomeUnknown && e.unknown()
}

func (e *UnansweredError) unknown() bool { return e.Key != "" && e.Sent }
