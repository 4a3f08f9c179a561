package semel

import (
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/store"
)

// Errors of calls that did not run the operation, or do not know its effect. Test
// with errors.Is.
var (
	// ErrInvalid: the call or the options are wrong; the store was not used. The
	// error is a *FieldError.
	ErrInvalid = callerr.ErrInvalid
	// ErrInProgress: another attempt with this key is running, or the next one is not
	// due yet. Retry with the same key after [RetryAfter].
	ErrInProgress = callerr.ErrInProgress
	// ErrInDoubt: the record is InDoubt. A retry helps only after an operator has
	// resolved the record, or after a probe has found evidence.
	ErrInDoubt = callerr.ErrInDoubt
	// ErrOutcomeUnknown: this call ran the function, and its effect is unknown. Retry
	// with the same key.
	ErrOutcomeUnknown = callerr.ErrOutcomeUnknown
	// ErrMismatch: the key belongs to another request. Use a new key.
	ErrMismatch = callerr.ErrMismatch
	// ErrKeyExpired: the time in the key is older than the retention, or in the
	// future, or the store has no partition for it. Nothing was run, or it was
	// rolled back.
	ErrKeyExpired = callerr.ErrKeyExpired
	// ErrResultUnavailable: the operation succeeded, but its result was not stored
	// or cannot be returned.
	ErrResultUnavailable = callerr.ErrResultUnavailable
	// ErrLeaseLost: the lease expired, or another attempt took over. It is the
	// cause of the leader's cancelled context.
	ErrLeaseLost = callerr.ErrLeaseLost
	// ErrUnavailable: the store did not answer, or could not begin or commit the
	// transaction, or a newer version of the program made the record. Nothing was
	// committed; retry with the same key. After [Enqueue], and after operators'
	// calls such as Resolve, the change may have been made all the same.
	ErrUnavailable = callerr.ErrUnavailable
	// ErrClosed: the engine was closed; nothing was run.
	ErrClosed = callerr.ErrClosed
	// ErrCancelled is the cause of the cancelled context of a function whose key was
	// cancelled while it ran.
	ErrCancelled = callerr.ErrCancelled
)

// FieldError names the invalid part of a call, a definition or options, in Field,
// and what is wrong with it, in Reason. It is [ErrInvalid].
type FieldError = callerr.FieldError

// Failure is the stored failure of an operation, the same for every caller: a Code,
// a Message and Details in JSON. Return one, marked [Final], to set what is stored.
// For any other error that is stored, Message is its text.
type Failure = callerr.Failure //nolint:errname // it is what is stored

// AttemptError is the error of an operation's function with its consequences: the
// Verdict about the effect, the State of the record, and After, how long a retry
// must wait. A State of Absent or Pending means that the same key may be tried
// again. Err is the function's error without its marks.
//
// errors.Is and errors.As find the function's own errors in it, and the errors of
// functions that it called. They do not find Semel's answers to inner operations,
// such as [ErrMismatch] or a [*Failure]: those are about another key, while an
// AttemptError is about its own. The function itself can inspect them where it made
// the call.
//
// It is [ErrOutcomeUnknown] if the effect is unknown, [ErrUnavailable] if the
// transaction failed and not its function, and [ErrLeaseLost] or [ErrCancelled] if
// that ended the function.
type AttemptError = callerr.AttemptError

// RetryAfter returns how long to wait before a retry: after [ErrInProgress] half the age
// of the attempt, at most until its lease ends, and between 200 ms and 30 s; after an error
// of an operation with [Retry] its delay; after other temporary errors a second. It returns
// zero if a retry has the same answer, or may run at once.
func RetryAfter(err error) time.Duration { return callerr.RetryAfter(err) }

// VerdictOf returns what a call's error says about the effect of its key, by this
// call or an earlier one. Errors of inner operations have no influence.
func VerdictOf(err error) store.Verdict { return callerr.VerdictOf(err) }

// Replayed reports whether err is a stored [*Failure] that an earlier attempt, or
// another caller's, made. It is for failures what replayed is for results.
func Replayed(err error) bool { return callerr.Replayed(err) }

// NotCommitted marks err as proof that the attempt had no effect and will have
// none. Nil stays nil.
//
// The mark is about the attempt whose function returns it, and about no other. If
// the function of an outer operation returns the error of an inner one, wrapped or
// not, the mark has no effect there: the outer function may have had effects of its
// own.
func NotCommitted(err error) error { return callerr.NotCommitted(err) }

// Final marks err as [NotCommitted] does, and as the operation's answer: it is
// stored, and the key has failed for good. Nil stays nil. Like NotCommitted, the mark
// says nothing about other operations.
func Final(err error) error { return callerr.Final(err) }

// Snooze returns the error of a function that has done nothing and wants to run
// again after d. It is proof, as [NotCommitted] is, and counts neither as an error
// nor as a crash. Without [Retry] it is only that proof. It is about its own
// operation only: an outer function that returns this error does not run again
// because of it.
func Snooze(d time.Duration) error { return callerr.Snooze(d) }

// RetryIn returns err with the delay of the next attempt, in place of the
// operation's Retry.Delay. It says nothing about the effect: mark err for that. Nil
// stays nil. It is about its own operation only, as NotCommitted is.
func RetryIn(err error, d time.Duration) error { return callerr.RetryIn(err, d) }
