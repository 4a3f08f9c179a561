package admin

import "github.com/semelgo/semel/internal/callerr"

// Errors of this package. Its functions also return those of package semel, such as
// [semel.ErrUnavailable] and [semel.FieldError].
var (
	// ErrNotFailed means that a record cannot be redriven in its current state: it
	// has not failed, or it is InDoubt under a policy that allows no other attempt,
	// and must be resolved.
	ErrNotFailed = callerr.ErrNotFailed
	// ErrNotOwned means that a caller chose the record's key: the stored failure
	// remains the answer, and a new try needs a new key. Only dead letters, and
	// records of operations with [semel.Retry] that the engine was given, can be
	// redriven.
	ErrNotOwned = callerr.ErrNotOwned
	// ErrNotPending means that a record to reschedule is not Pending.
	ErrNotPending = callerr.ErrNotPending
	// ErrNotInDoubt means that a record to resolve is not in doubt: it is absent,
	// Pending, running or final.
	ErrNotInDoubt = callerr.ErrNotInDoubt
	// ErrNoProbe means that no probe can be called: the engine was not given the record's
	// operation, or the operation's policy has no probe.
	ErrNoProbe = callerr.ErrNoProbe
)
