package boundary_test

import (
	"errors"
	"fmt"

	"github.com/semelgo/semel"
)

// shapes are the ways in which a function hands on the error of a call that it made.
func shapes() map[string]func(error) error {
	return map[string]func(error) error{
		"as it is": func(err error) error { return err },
		"with %w":  func(err error) error { return fmt.Errorf("send the receipt: %w", err) },
		"joined":   func(err error) error { return errors.Join(errors.New("another"), err) },
		"wrapper":  func(err error) error { return &wrapper{err} },
		"searched": func(err error) error { return &searched{err} },
		"the attempt alone": func(err error) error {
			if attempt, ok := errors.AsType[*semel.AttemptError](err); ok {
				return attempt
			}
			return err
		},
		"the function's error alone": func(err error) error {
			if attempt, ok := errors.AsType[*semel.AttemptError](err); ok {
				return attempt.Err
			}
			return err
		},
	}
}

// wrapper is an error type with an Unwrap method.
type wrapper struct{ err error }

func (w *wrapper) Error() string { return "wrapped: " + w.err.Error() }
func (w *wrapper) Unwrap() error { return w.err }

// searched is an error type that answers errors.Is and errors.As by itself, as lists of
// errors do.
type searched struct{ err error }

func (s *searched) Error() string        { return "searched: " + s.err.Error() }
func (s *searched) Is(target error) bool { return errors.Is(s.err, target) }
func (s *searched) As(target any) bool   { return errors.As(s.err, target) }
