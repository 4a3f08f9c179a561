// Package exit defines the program's exit codes. Scripts rely on them, so they
// are stable.
package exit

import (
	"fmt"

	"github.com/semelgo/semel/internal/errtype"
)

// The exit codes.
const (
	// OK: the command succeeded, or the check passed.
	OK = 0
	// Failed: the command failed, or the check did not pass.
	Failed = 1
	// Usage: the command line, or a file that it names, is invalid. Nothing was
	// tried.
	Usage = 2
	// Unavailable: the server or the database cannot be reached, so nothing is
	// known.
	Unavailable = 3
	// NotFound: there is no such record or entry.
	NotFound = 4
	// Refused: the state of the record does not allow the change. Nothing was
	// changed.
	Refused = 5
	// Warned: the check passed with warnings.
	Warned = 6
)

// Error is an error with an exit code.
type Error struct {
	Code int
	Err  error // nil: everything has been printed already
}

// Error returns the message for people.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns an error with the code Usage.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code for err: the code of an Error in its chain,
// otherwise Failed, and OK for nil.
func CodeOf(err error) int {
	if err == nil {
		return OK
	}
	if own, ok := errtype.Find[*Error](err); ok {
		return own.Code
	}
	return Failed
}
