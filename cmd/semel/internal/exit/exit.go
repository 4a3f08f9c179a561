// Package exit says with which code the program ends. Scripts rely on the
// codes: they are stable.
package exit

import (
	"errors"
	"fmt"
)

// The codes the program ends with.
const (
	// OK: what was asked was done, or found to be so.
	OK = 0
	// Failed: it was not done, or found not to be so.
	Failed = 1
	// Usage: the command line, or a file it names, is wrong. Nothing was tried.
	Usage = 2
	// Unavailable: the server or the database that was to be asked cannot be
	// reached, so nothing is known.
	Unavailable = 3
	// NotFound: there is no such record, or no such entry.
	NotFound = 4
	// Refused: what stands does not allow it. Nothing was changed.
	Refused = 5
	// Warned: nothing is wrong, but something is not as it should be.
	Warned = 6
)

// Error is an error that knows the code to end with.
type Error struct {
	Code int
	Err  error // nil: everything was told already
}

// Error returns what is told to people.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns what Error speaks of.
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error that ends the program with Usage.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the code that err ends the program with: its own if it has one,
// else Failed, and OK for nil.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Code
	}
	return Failed
}
