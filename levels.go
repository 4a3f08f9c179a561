package semel

import (
	"errors"
	"log/slog"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/codec"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// endKind returns the event for a record that an attempt has ended.
func endKind(s protocol.Step, now *store.Record) EventKind {
	switch {
	case s == protocol.StepSettle:
		return EventSettled
	case codec.IsDeadLetter(*now) && codec.DecodeFailure(now.Outcome).Code == codec.CodeExhausted:
		return EventExhausted
	case codec.IsDeadLetter(*now):
		return EventRejected
	}
	switch now.State {
	case store.Succeeded:
		return EventSucceeded
	case store.Failed:
		return EventFailed
	case store.InDoubt:
		return EventInDoubt
	case store.Absent, store.Pending, store.InProgress:
	}
	return EventReleased
}

// level is the level at which [SlogObserver] logs an event: Error if an operator
// must act, Warn for a fault that Semel has handled, Info for events that an
// operator may search for later, and Debug for the normal course.
func (e Event) level() slog.Level {
	switch e.Kind {
	case EventInDoubt, EventExhausted, EventConflict, EventLate, EventLateDropped, EventNotDurable, EventAltered:
		return slog.LevelError
	case EventTakeover, EventSwept, EventMismatch, EventRejected, EventTombstone, EventFenced, EventLeaseLost, EventStoreError,
		EventAfterOutcome:
		return slog.LevelWarn
	case EventReleased:
		if _, snoozed := errors.AsType[*callerr.SnoozeError](e.Err); snoozed || e.Err == nil {
			return slog.LevelDebug
		}
		return slog.LevelInfo
	case EventFailed, EventHealed, EventSettled, EventAmbiguousYes, EventAmbiguousNo, EventLateRecorded, EventResolved, EventCancelled,
		EventRedriven:
		return slog.LevelInfo
	case EventClaimed, EventReplayed, EventSucceeded, EventRetried:
		return slog.LevelDebug
	default:
		return slog.LevelDebug
	}
}
