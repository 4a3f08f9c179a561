package semel

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/semelgo/semel/store"
)

// Errors of calls that did not run the operation, or do not know its effect. Test
// with errors.Is.
var (
	// ErrInvalid: the call or the options are wrong; the store was not used. The
	// error is a *FieldError.
	ErrInvalid = errors.New("semel: invalid")
	// ErrInProgress: another attempt with this key is running, or the next one is not
	// due yet. Retry with the same key after [RetryAfter].
	ErrInProgress = errors.New("semel: in progress")
	// ErrInDoubt: the record is InDoubt. A retry helps only after an operator has
	// resolved the record, or after a probe has found evidence.
	ErrInDoubt = errors.New("semel: in doubt")
	// ErrOutcomeUnknown: this call ran the function, and its effect is unknown. Retry
	// with the same key.
	ErrOutcomeUnknown = errors.New("semel: outcome unknown")
	// ErrMismatch: the key belongs to another request. Use a new key.
	ErrMismatch = errors.New("semel: key was used for another request")
	// ErrKeyExpired: the time in the key is older than the retention, or in the
	// future, or the store has no partition for it. Nothing was run, or it was
	// rolled back.
	ErrKeyExpired = errors.New("semel: key expired")
	// ErrResultUnavailable: the operation succeeded, but its result was not stored
	// or cannot be returned.
	ErrResultUnavailable = errors.New("semel: succeeded, result unavailable")
	// ErrLeaseLost: the lease expired, or another attempt took over. It is the
	// cause of the leader's cancelled context.
	ErrLeaseLost = errors.New("semel: lease lost")
	// ErrUnavailable: the store did not answer, or could not begin or commit the
	// transaction, or a newer version of the program made the record. Nothing was
	// committed; retry with the same key. After [Enqueue], and after operators'
	// calls such as Resolve, the change may have been made all the same.
	ErrUnavailable = errors.New("semel: store unavailable")
	// ErrClosed: the engine was closed; nothing was run.
	ErrClosed = errors.New("semel: engine closed")
)

// FieldError names the invalid part of a call, a definition or options.
type FieldError struct {
	Field  string
	Reason string
}

// Error returns the field and the reason.
func (e *FieldError) Error() string { return "semel: " + e.Field + " " + e.Reason }

// Is reports that a FieldError is [ErrInvalid].
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func invalid(field, reason string) error { return &FieldError{Field: field, Reason: reason} }

// Failure is the stored failure of an operation, the same for every caller. Return
// one, marked [Final], to set what is stored. For any other error that is stored,
// Message is its text.
type Failure struct { //nolint:errname // it is what is stored, and an error only when it is told
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
//
// errors.Is and errors.As find the function's own errors in it, and the errors of
// functions that it called. They do not find Semel's answers to inner operations,
// such as [ErrMismatch] or a [*Failure]: those are about another key, while an
// AttemptError is about its own. The function itself can inspect them where it made
// the call.
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
		_, infrastructure := errors.AsType[*txError](e.own)
		return infrastructure
	case ErrLeaseLost, ErrCancelled:
		return isOwn(e.own, target)
	default:
		return isInternal(target) && isOwn(e.own, target)
	}
}

// waitError is ErrInProgress with the time to wait.
type waitError struct{ after time.Duration }

func (e *waitError) Error() string {
	return fmt.Sprintf("%v, retry after %v", ErrInProgress, e.after)
}

func (e *waitError) Is(target error) bool { return target == ErrInProgress }

// RetryAfter returns how long to wait before a retry: after [ErrInProgress] a time
// that grows with the age of the attempt, after an error of an operation with
// [Retry] its delay, and after other temporary errors a second. It returns zero if
// a retry has the same answer, or may run at once.
func RetryAfter(err error) time.Duration {
	var w *waitError
	var attempt *AttemptError
	switch {
	case errors.As(err, &attempt) && attempt.After > 0:
		return attempt.After
	case errors.As(err, &w):
		return w.after
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed), errors.Is(err, ErrOutcomeUnknown):
		return time.Second
	default:
		return 0
	}
}

// VerdictOf returns what a call's error says about the effect of its key, by this
// call or an earlier one. Errors of inner operations have no influence.
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

// replayedError is a stored failure that was answered from the record. Its text is
// the failure's.
type replayedError struct{ failure error }

func (e *replayedError) Error() string { return e.failure.Error() }
func (e *replayedError) Unwrap() error { return e.failure }

// Replayed reports whether err is a stored [*Failure] that an earlier attempt, or
// another caller's, made. It is for failures what replayed is for results.
func Replayed(err error) bool {
	var attempt *AttemptError
	var replayed *replayedError
	return !errors.As(err, &attempt) && errors.As(err, &replayed)
}

type markedError struct {
	err  error
	keep bool
}

func (e *markedError) Error() string { return e.err.Error() }
func (e *markedError) Unwrap() error { return e.err }

// NotCommitted marks err as proof that the attempt had no effect and will have
// none. Nil stays nil.
//
// The mark is about the attempt whose function returns it, and about no other. If
// the function of an outer operation returns the error of an inner one, wrapped or
// not, the mark has no effect there: the outer function may have had effects of its
// own.
func NotCommitted(err error) error {
	if err == nil {
		return nil
	}
	return &markedError{err: err}
}

// Final marks err as [NotCommitted] does, and as the operation's answer: it is
// stored, and the key has failed for good. Nil stays nil. The mark is about its own
// operation only, as that of NotCommitted.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &markedError{err: err, keep: true}
}
