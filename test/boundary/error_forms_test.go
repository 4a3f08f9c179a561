package boundary_test

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/errtype"
)

// errorForms are the ways in which a function returns the error of an inner call.
func errorForms() map[string]func(error) error {
	return map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"with %w":  func(err error) error { return fmt.Errorf("send the receipt: %w", err) },
		"joined":   func(err error) error { return errors.Join(errors.New("another"), err) },
		"wrapper":  func(err error) error { return &wrappingError{err} },
		"searched": func(err error) error { return &customError{err} },
		"the attempt alone": func(err error) error {
			if attempt, ok := errtype.Find[*semel.AttemptError](err); ok {
				return attempt
			}
			return err
		},
		"the function's error alone": func(err error) error {
			if attempt, ok := errtype.Find[*semel.AttemptError](err); ok {
				return attempt.Err
			}
			return err
		},
	}
}

// wrappingError is an error type with an Unwrap method.
type wrappingError struct{ err error }

func (w *wrappingError) Error() string { return "wrapped: " + w.err.Error() }
func (w *wrappingError) Unwrap() error { return w.err }

// customError is an error type with its own Is and As methods, as lists of errors
// have.
type customError struct{ err error }

func (s *customError) Error() string        { return "searched: " + s.err.Error() }
func (s *customError) Is(target error) bool { return errors.Is(s.err, target) }
func (s *customError) As(target any) bool   { return errors.As(s.err, target) }
