package semel

import (
	"context"
	"log/slog"
	"time"

	"github.com/semelgo/semel/store"
)

// Observer is told what the engine sees, on the goroutine that saw it. It must be quick and
// safe for concurrent use. It may call the engine, which holds no lock meanwhile; the events
// of its own calls come to it too.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// EventKind says what an [Event] is about. The values are stable names.
type EventKind string

// What is observed. Those marked "alarm" need an operator; docs/operations.md says what to
// do about each.
const (
	EventClaimed      EventKind = "claimed"        // became the leader
	EventTakeover     EventKind = "takeover"       // became the leader of what another left
	EventReplayed     EventKind = "replayed"       // answered from the record
	EventMismatch     EventKind = "mismatch"       // refused: another request's key
	EventReleased     EventKind = "released"       // given back; may try again
	EventSucceeded    EventKind = "succeeded"      // outcome recorded
	EventFailed       EventKind = "failed"         // failure recorded
	EventRejected     EventKind = "rejected"       // a message's handler has refused it for good; it is a dead letter
	EventExhausted    EventKind = "exhausted"      // alarm: attempts used up, Failed or InDoubt; it is a dead letter
	EventInDoubt      EventKind = "in_doubt"       // alarm: the effect is unknown; it needs evidence, or an operator who resolves it
	EventHealed       EventKind = "healed"         // settled by evidence
	EventSettled      EventKind = "settled"        // settled by its late leader
	EventLeaseLost    EventKind = "lease_lost"     // the handler's context was cancelled
	EventFenced       EventKind = "fenced"         // a zombie's change was not in force
	EventConflict     EventKind = "conflict"       // alarm: an effect that a later attempt does not know of
	EventAmbiguousYes EventKind = "commit_proven"  // an unknown commit had committed
	EventAmbiguousNo  EventKind = "commit_refuted" // an unknown commit had not, and never will
	EventTombstone    EventKind = "tombstone"      // succeeded, but the result cannot be stored
	EventAltered      EventKind = "result_altered" // alarm: succeeded, but JSON lost a part of the result
	EventLate         EventKind = "late"           // alarm: an outcome could not be recorded yet
	EventLateRecorded EventKind = "late_recorded"  // it was recorded after all
	EventLateDropped  EventKind = "late_dropped"   // alarm: the engine gave up recording it
	EventSwept        EventKind = "swept"          // freed what a dead leader left
	EventResolved     EventKind = "resolved"       // settled by an operator
	EventCancelled    EventKind = "cancelled"      // failed before it was run
	EventRedriven     EventKind = "redriven"       // an operator has a dead letter run again
	EventRetried      EventKind = "retried"        // a transaction that lost to another is run again
	EventStoreError   EventKind = "store_error"    // the store did not answer; asked again
	EventNotDurable   EventKind = "not_durable"    // alarm: the store may lose records that it has confirmed; Err names the setting
	EventAfterOutcome EventKind = "after_outcome"  // an error or a panic after the outcome was committed
)

// Event is one thing seen. It never carries a key, a scope or a body: ID is a
// hash of them.
type Event struct {
	Kind      EventKind
	Operation string
	ID        store.ID
	Attempt   uint32
	State     store.State
	Err       error
	Elapsed   time.Duration // since the attempt began, where there is one
}

// Alarm reports whether the event needs an operator.
func (e Event) Alarm() bool {
	switch e.Kind {
	case EventInDoubt, EventExhausted, EventConflict, EventLate, EventLateDropped, EventNotDurable, EventAltered:
		return true
	default:
		return false
	}
}

// SlogObserver logs every event to l. Alarms are errors. Warnings are takeovers,
// records that the sweeper freed, mismatches, rejected messages, tombstones, lost
// leases, fenced attempts and store errors. Failures, attempts that are tried again
// and what operators do are logged at Info; claims, replays, successes and snoozes at
// Debug. docs/operations.md has the table. Keys appear only as the record's ID, which
// is a hash.
func SlogObserver(l *slog.Logger) Observer { return slogObserver{l} }

type slogObserver struct{ log *slog.Logger }

func (o slogObserver) Observe(ctx context.Context, e Event) {
	attrs := []slog.Attr{
		slog.String("event", string(e.Kind)), slog.String("operation", e.Operation), slog.String("id", e.ID.String()),
		slog.Uint64("attempt", uint64(e.Attempt)), slog.String("state", e.State.String()),
	}
	if e.Elapsed > 0 {
		attrs = append(attrs, slog.Duration("elapsed", e.Elapsed))
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	o.log.LogAttrs(ctx, e.level(), "semel", attrs...)
}
