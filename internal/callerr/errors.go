package callerr

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// Errors of calls. Package semel says what they mean.
var (
	ErrInvalid           = errors.New("semel: invalid")
	ErrInProgress        = errors.New("semel: in progress")
	ErrInDoubt           = errors.New("semel: in doubt")
	ErrOutcomeUnknown    = errors.New("semel: outcome unknown")
	ErrMismatch          = errors.New("semel: key was used for another request")
	ErrOtherInput        = fmt.Errorf("%w: one with another input", ErrMismatch) // and in no other part
	ErrKeyExpired        = errors.New("semel: key expired")
	ErrResultUnavailable = errors.New("semel: succeeded, result unavailable")
	ErrLeaseLost         = errors.New("semel: lease lost")
	ErrUnavailable       = errors.New("semel: store unavailable")
	ErrClosed            = errors.New("semel: engine closed")
	ErrCancelled         = errors.New("semel: cancelled")
	ErrTokenUnknown      = errors.New("semel: one-time token unknown")
	ErrTokenExpired      = errors.New("semel: one-time token expired")
	ErrTooManyTokens     = errors.New("semel: too many open one-time tokens")
	ErrNotFailed         = errors.New("semel: not failed")
	ErrNotOwned          = errors.New("semel: the key is its caller's")
	ErrNotPending        = errors.New("semel: not pending")
	ErrNotInDoubt        = errors.New("semel: not in doubt")
	ErrNoProbe           = errors.New("semel: no probe")
)

// FieldError names the invalid part of a call, a definition or options.
type FieldError struct {
	Field  string
	Reason string
	Err    error // the cause, if another error is
}

// Error returns the field and the reason.
func (e *FieldError) Error() string { return "semel: " + e.Field + " " + e.Reason }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// Is reports that a FieldError is [ErrInvalid].
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

// Invalid returns a *FieldError.
func Invalid(field, reason string) error { return &FieldError{Field: field, Reason: reason} }

// Failure is the stored failure of an operation, the same for every caller. Return
// one, marked [Final], to set what is stored.
type Failure struct { //nolint:errname // it is stored as data, and becomes an error only when a caller receives it
	Code    string          `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Error returns the code, if there is one, and the message.
func (f *Failure) Error() string {
	if f.Code == "" {
		return f.Message
	}
	return f.Code + ": " + f.Message
}

// AttemptError is the error of an operation's function with its consequences.
type AttemptError struct {
	Operation string
	// Verdict is what is known about the effect.
	Verdict store.Verdict
	// State is the current state. Absent or Pending mean that the same key may be
	// tried again.
	State store.State
	// After is how long a retry must wait, as the operation's [Retry] says.
	After time.Duration
	// Err is the function's error without the marks of [NotCommitted], [Final],
	// [Snooze] and [RetryIn], which are about this attempt only.
	Err error

	own error // Err with its marks; nil in an AttemptError that other packages made
}

// Error returns the consequences for the key, then the function's error.
func (e *AttemptError) Error() string {
	return fmt.Sprintf("semel: %s %s: %v", e.Operation, e.led(), e.Err)
}

func (e *AttemptError) led() string {
	switch {
	case e.Verdict == store.Unknown && e.State == store.InDoubt:
		return "has an unknown outcome and is in doubt (mark errors that prove that nothing was committed with NotCommitted)"
	case e.Verdict == store.Unknown:
		return "may or may not have happened"
	case e.Verdict == store.Committed:
		return "happened, although its function failed"
	default:
		return "did not happen and may be tried again with the same key"
	}
}

// Unwrap returns the function's error.
func (e *AttemptError) Unwrap() error { return e.Err }

// Is reports [ErrOutcomeUnknown] if the effect is unknown, [ErrUnavailable] if the
// transaction failed and not its function, and [ErrLeaseLost] or [ErrCancelled] if
// that ended the function.
func (e *AttemptError) Is(target error) bool {
	switch target {
	case ErrOutcomeUnknown:
		return e.Verdict == store.Unknown
	case ErrUnavailable:
		_, infrastructure := errtype.Find[*TxError](e.own)
		return infrastructure
	case ErrLeaseLost, ErrCancelled:
		return IsOwn(e.own, target)
	default:
		return isInternal(target) && IsOwn(e.own, target)
	}
}

// IsTemporary reports whether the function of an attempt, or Classify, said that the
// attempt had no effect. A rollback alone does not say that a retry helps.
func IsTemporary(err error) bool {
	attempt, ok := errtype.Find[*AttemptError](err)
	if !ok || attempt.Verdict != store.NotCommitted {
		return false
	}
	_, marked := errtype.Find[*MarkedError](attempt.own)
	return marked
}

// WaitError is ErrInProgress with the time to wait.
type WaitError struct{ After time.Duration }

// Error returns the message.
func (e *WaitError) Error() string {
	return fmt.Sprintf("%v, retry after %v", ErrInProgress, e.After)
}

// Is reports that the error is ErrInProgress.
func (e *WaitError) Is(target error) bool { return target == ErrInProgress }

// RetryAfter returns how long to wait before a retry.
func RetryAfter(err error) time.Duration {
	attempt, _ := errtype.Find[*AttemptError](err)
	wait, _ := errtype.Find[*WaitError](err)
	switch {
	case attempt != nil && attempt.After > 0:
		return attempt.After
	case wait != nil:
		return wait.After
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed), errors.Is(err, ErrOutcomeUnknown):
		return time.Second
	default:
		return 0
	}
}

// VerdictOf returns what a call's error says about the effect of its key.
func VerdictOf(err error) store.Verdict {
	var attempt *AttemptError
	var failure *Failure
	switch {
	case err == nil:
		return store.Committed
	case errors.As(err, &attempt):
		return attempt.Verdict
	case errors.Is(err, ErrResultUnavailable):
		return store.Committed
	case errors.As(err, &failure):
		return store.NotCommitted
	default:
		return store.Unknown
	}
}

// ReplayedError is a stored failure that was answered from the record. Its text is
// the failure's.
type ReplayedError struct{ Failure error }

// Error returns the message.
func (e *ReplayedError) Error() string { return e.Failure.Error() }

// Unwrap returns the cause.
func (e *ReplayedError) Unwrap() error { return e.Failure }

// Replayed reports whether err is a stored failure that an earlier attempt, or
// another caller's, made.
func Replayed(err error) bool {
	_, attempt := errtype.Find[*AttemptError](err)
	_, replayed := errtype.Find[*ReplayedError](err)
	return replayed && !attempt
}
