package callerr

import (
	"errors"
	"reflect"
	"slices"

	"github.com/semelgo/semel/internal/canonical"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// An operation is a boundary: the engine concludes only from an attempt's own
// errors what becomes of that attempt. An operation's function often calls other
// operations and returns their errors. Three types keep these errors from deciding
// about the outer attempt:
//
// callError seals the error that a call returns. The caller can inspect it with
// errors.Is and errors.As, but cannot find the engine's marks and the store's
// sentinels in it.
//
// functionError seals the function's error inside an [AttemptError]. The caller of
// the outer operation finds the errors of the user's program in it, and none of
// Semel's. The AttemptError itself describes its own attempt.
//
// maskedError is a view of a function's error without the errors of inner calls.

// callError is the error that a call returns to its caller. It has no Unwrap
// method: every search goes through its Is and As methods, also a search through
// errors.Join or through a wrapper type with such methods of its own.
type callError struct{ err error }

// Seal makes err the error that a call returns.
func Seal(err error) error {
	switch err.(type) { //nolint:errorlint // what err wraps has its own boundary
	case nil, *callError:
		return err
	default:
		return &callError{err}
	}
}

func (e *callError) Error() string { return e.err.Error() }

func (e *callError) Is(target error) bool { return !isInternal(target) && errors.Is(e.err, target) }

func (e *callError) As(target any) bool { return !isConclusive(target) && errors.As(e.err, target) }

// isConclusive reports whether target is a type of error from which the engine
// concludes what becomes of an attempt.
func isConclusive(target any) bool {
	switch target.(type) {
	case **MarkedError, **SnoozeError, **delayedError, **ExhaustedError, **FenceError, **TxError,
		**unmarkedError, **InputError, **CancelledError, **LeaseLostError, **AbandonedError, **ProbeError, **canonical.LossError:
		return true
	default:
		return false
	}
}

// isInternal reports whether target is an error by which a store tells the engine
// how a transaction or a change ended, or one that only the engine compares with.
func isInternal(target error) bool {
	return slices.Contains([]error{
		store.ErrSuperseded, store.ErrConflict, store.ErrInterrupted, store.ErrTxEndedByHandler, store.ErrNoPartition, store.ErrNotStarted,
		ErrAbandoned, ErrNotRun, ErrBusy, ErrRefused,
	}, target)
}

// functionError is a function's error as the operation's caller sees it.
type functionError struct{ err error }

// NewAttemptError returns the error of an attempt whose function, or transaction,
// ended with err.
func NewAttemptError(operation string, v store.Verdict, s store.State, err error) *AttemptError {
	return &AttemptError{Operation: operation, Verdict: v, State: s, Err: &functionError{err}, own: err}
}

func (e *functionError) Error() string { return e.err.Error() }

// Is finds the errors that are not Semel's.
func (e *functionError) Is(target error) bool { return !isSentinel(target) && errors.Is(e.err, target) }

// isSentinel reports whether target is an error of Semel.
func isSentinel(target error) bool {
	return isInternal(target) || slices.Contains([]error{
		ErrInvalid, ErrInProgress, ErrInDoubt, ErrOutcomeUnknown, ErrMismatch, ErrOtherInput, ErrKeyExpired, ErrResultUnavailable,
		ErrLeaseLost, ErrCancelled, ErrUnavailable, ErrClosed, ErrNotInDoubt, ErrNotFailed, ErrNotPending, ErrNotOwned,
		ErrTokenUnknown, ErrTokenExpired, ErrTooManyTokens,
	}, target)
}

// As finds the errors that are not Semel's.
func (e *functionError) As(target any) bool {
	return !isAnswer(target) && !isConclusive(target) && errors.As(e.err, target)
}

// isAnswer reports whether target is a type of error with which Semel answers a
// call.
func isAnswer(target any) bool {
	switch target.(type) {
	case **AttemptError, **Failure, **FieldError, **WaitError, **ReplayedError:
		return true
	default:
		return false
	}
}

// maskedError is an error without the errors of inner calls.
type maskedError struct{ err error }

// WithoutInnerErrors returns err without the errors of inner calls: err itself if
// there are none.
func WithoutInnerErrors(err error) error {
	if !containsCallError(err) {
		return err
	}
	return &maskedError{err}
}

func (e *maskedError) Error() string        { return e.err.Error() }
func (e *maskedError) Is(target error) bool { return IsOwn(e.err, target) }
func (e *maskedError) As(target any) bool   { return AsOwn(e.err, target) }

// IsOwn is errors.Is without the errors of inner calls.
func IsOwn(err, target error) bool {
	canEqual := reflect.TypeOf(target).Comparable()
	return walkOwn(err, func(err error) bool {
		if canEqual && err == target { //nolint:errorlint // this is a step of errors.Is
			return true
		}
		x, ok := err.(interface{ Is(target error) bool })
		return ok && (!isSentinel(target) || isOurs(err)) && x.Is(target)
	})
}

// isOurs reports whether err has an Is or As method of this package. Those of other
// packages may search the errors of inner calls.
func isOurs(err error) bool {
	switch err.(type) { //nolint:errorlint // this is a step of errors.Is
	case *LeaseLostError, *CancelledError, *AbandonedError, *TxError, *unmarkedError:
		return true
	default:
		return false
	}
}

// AsOwn is errors.As without the errors of inner calls.
func AsOwn(err error, target any) bool {
	into := reflect.ValueOf(target).Elem()
	return walkOwn(err, func(err error) bool {
		if reflect.TypeOf(err).AssignableTo(into.Type()) {
			into.Set(reflect.ValueOf(err))
			return true
		}
		x, ok := err.(interface{ As(target any) bool })
		return ok && (!isAnswer(target) || isOurs(err)) && x.As(target)
	})
}

// walkOwn visits err and the errors that it wraps, in the order of errors.Is,
// except for errors of inner calls. It stops when visit returns true, and reports
// whether that happened.
func walkOwn(err error, visit func(error) bool) bool {
	if err == nil || isCallError(err) {
		return false
	}
	if visit(err) {
		return true
	}
	switch x := err.(type) { //nolint:errorlint // this is a step of errors.Is
	case interface{ Unwrap() error }:
		return walkOwn(x.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, err := range x.Unwrap() {
			if walkOwn(err, visit) {
				return true
			}
		}
	}
	return false
}

// isCallError reports whether err is the error of a call.
func isCallError(err error) bool {
	switch err.(type) { //nolint:errorlint // what it wraps is looked at by itself
	case *callError, *AttemptError:
		return true
	default:
		return false
	}
}

// containsCallError reports whether err is, or wraps, the error of a call.
func containsCallError(err error) bool {
	_, attempt := errtype.Find[*AttemptError](err)
	_, call := errtype.Find[*callError](err)
	return attempt || call
}
