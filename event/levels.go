package event

import (
	"log/slog"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/errtype"
)

// level is the level at which [Slog] logs an event: Error if an operator
// must act, Warn for a fault that Semel has handled, Info for events that an
// operator may search for later, and Debug for the normal course.
func (e Event) level() slog.Level {
	switch e.Kind {
	case InDoubt, Exhausted, Conflict, Late, LateDropped, NotDurable, Altered, Parked:
		return slog.LevelError
	case Takeover, Swept, Mismatch, Rejected, Tombstone, Fenced, LeaseLost, StoreError,
		AfterOutcome:
		return slog.LevelWarn
	case Released:
		if _, snoozed := errtype.Find[*callerr.SnoozeError](e.Err); snoozed || e.Err == nil {
			return slog.LevelDebug
		}
		return slog.LevelInfo
	case Failed, Healed, Settled, AmbiguousYes, AmbiguousNo, LateRecorded, Resolved, Cancelled,
		Redriven:
		return slog.LevelInfo
	case Claimed, Replayed, Waited, Succeeded, Retried:
		return slog.LevelDebug
	default:
		return slog.LevelDebug
	}
}
