package callerr

import (
	"errors"
	"strconv"
)

// ErrNotRun means that the function of a transaction was not called.
var ErrNotRun = errors.New("semel: not run")

// CancelledError is ErrCancelled with its reason, for one attempt. The contexts of
// inner operations end with it, too; their keys were not cancelled.
type CancelledError struct {
	Of     any // the attempt; nil: none was running
	Reason string
}

// Error returns the message.
func (e *CancelledError) Error() string { return ErrCancelled.Error() + ": " + e.Reason }

// Is reports that the error is ErrCancelled.
func (e *CancelledError) Is(target error) bool { return target == ErrCancelled }

// LeaseLostError is ErrLeaseLost for one attempt. The contexts of inner operations
// end with it, too; their leases are not lost.
type LeaseLostError struct {
	Of  any // the attempt
	Why string
}

// Error returns the message.
func (e *LeaseLostError) Error() string { return ErrLeaseLost.Error() + ": " + e.Why }

// Is reports that the error is ErrLeaseLost.
func (e *LeaseLostError) Is(target error) bool { return target == ErrLeaseLost }

// ErrAbandoned means that the function panicked or called runtime.Goexit.
var ErrAbandoned = errors.New("semel: the function did not return")

// FenceError is an error of raising the fence or of the look-up after it. No mark
// in it says anything about an earlier attempt.
type FenceError struct{ Err error }

// Error returns the message.
func (e *FenceError) Error() string { return "fence: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FenceError) Unwrap() error { return e.Err }

// unmarkedError is the error of a transaction that ended because of its circumstances.
// It hides the marks of the function's error, which was based on data that is no
// longer true.
type unmarkedError struct{ err error }

func (e *unmarkedError) Error() string        { return e.err.Error() }
func (e *unmarkedError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *unmarkedError) As(target any) bool {
	if _, mark := target.(**MarkedError); mark {
		return false
	}
	return errors.As(e.err, target)
}

// InfraError returns the error of a transaction that ended because of its
// circumstances, without the marks of the function's error. ran says whether its function
// ran.
func InfraError(err error, ran bool) error { return &TxError{Err: &unmarkedError{err}, Ran: ran} }

// InputError means that a stored input cannot be decoded.
type InputError struct {
	Operation string
	Err       error
}

// Error returns the message.
func (e *InputError) Error() string { return "read the input of " + e.Operation + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

// TxError is an error of the store's transaction, and not of the operation: it
// could not begin or commit. The AttemptError around it says what is known of the
// effect.
type TxError struct {
	Err error
	Ran bool // its function ran, and may be the cause
}

// Error returns the message.
func (e *TxError) Error() string { return "transaction: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TxError) Unwrap() error { return e.Err }

// Is reports that the error is ErrUnavailable.
func (e *TxError) Is(target error) bool { return target == ErrUnavailable }

// ExhaustedError means that an attempt was not run, because too many attempts
// before it crashed.
type ExhaustedError struct{ Crashes int }

// Error returns the message.
func (e *ExhaustedError) Error() string {
	return "semel: " + strconv.Itoa(e.Crashes) + " attempts crashed"
}

// ErrBusy means that another open transaction holds the record.
var ErrBusy = errors.New("semel: busy")

// ErrRefused means that the store will never write this change.
var ErrRefused = errors.New("semel: refused by the store")

// ErrAfterLost means that a refused change may have been applied by an earlier try
// whose reply was lost.
var ErrAfterLost = errors.New("after no answer")

// ProbeError is the error of a probe.
type ProbeError struct {
	Operation string
	Err       error
}

// Error returns the message.
func (e *ProbeError) Error() string {
	return "sweep " + e.Operation + ": look for evidence: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ProbeError) Unwrap() error { return e.Err }

// AbandonedError is the error of a function that did not return.
type AbandonedError struct{ Why error }

// Error returns the message.
func (e *AbandonedError) Error() string { return ErrAbandoned.Error() + ": " + e.Why.Error() }

// Unwrap returns the cause.
func (e *AbandonedError) Unwrap() error { return e.Why }

// Is reports that the error is ErrAbandoned.
func (e *AbandonedError) Is(target error) bool { return target == ErrAbandoned }
