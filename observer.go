package semel

import (
	"context"
	"log/slog"
	"time"

	"github.com/semelgo/semel/store"
)

// Observer receives the engine's events, on the goroutine that emits them. It must
// be fast and safe for concurrent use. It may call the engine, which holds no lock
// meanwhile, and then also receives the events of its own calls.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// EventKind is the kind of an [Event]. The values are stable names.
type EventKind string

// The kinds of events. An operator must act on those marked "alarm";
// docs/operations.md says how.
const (
	EventClaimed      EventKind = "claimed"        // became the leader
	EventTakeover     EventKind = "takeover"       // became the leader of an expired attempt
	EventReplayed     EventKind = "replayed"       // answered from the record
	EventMismatch     EventKind = "mismatch"       // refused: the key belongs to another request
	EventReleased     EventKind = "released"       // released: the key may be tried again
	EventSucceeded    EventKind = "succeeded"      // outcome recorded
	EventFailed       EventKind = "failed"         // failure recorded
	EventRejected     EventKind = "rejected"       // a message's handler rejected it for good; it is a dead letter
	EventExhausted    EventKind = "exhausted"      // alarm: attempts used up, Failed or InDoubt; it is a dead letter
	EventInDoubt      EventKind = "in_doubt"       // alarm: the effect is unknown; an operator or a probe must resolve it
	EventHealed       EventKind = "healed"         // completed by evidence
	EventSettled      EventKind = "settled"        // completed by its late leader
	EventLeaseLost    EventKind = "lease_lost"     // the handler's context was cancelled
	EventFenced       EventKind = "fenced"         // a zombie's change was superseded
	EventConflict     EventKind = "conflict"       // alarm: an effect that no later attempt knows of
	EventAmbiguousYes EventKind = "commit_proven"  // a commit with a lost reply was applied
	EventAmbiguousNo  EventKind = "commit_refuted" // a commit with a lost reply was not applied, and never will be
	EventTombstone    EventKind = "tombstone"      // succeeded, but the result cannot be stored
	EventAltered      EventKind = "result_altered" // alarm: succeeded, but JSON lost a part of the result
	EventLate         EventKind = "late"           // alarm: an outcome could not be recorded yet
	EventLateRecorded EventKind = "late_recorded"  // a late outcome was recorded
	EventLateDropped  EventKind = "late_dropped"   // alarm: the engine gave up recording it
	EventSwept        EventKind = "swept"          // the sweeper settled an expired attempt
	EventResolved     EventKind = "resolved"       // resolved by an operator
	EventCancelled    EventKind = "cancelled"      // cancelled before it ran
	EventRedriven     EventKind = "redriven"       // an operator redrove a dead letter
	EventRetried      EventKind = "retried"        // a transaction is retried after a conflict
	EventStoreError   EventKind = "store_error"    // the store did not answer; the call is repeated
	EventNotDurable   EventKind = "not_durable"    // alarm: the store may lose records that it has confirmed; Err names the setting
	EventAfterOutcome EventKind = "after_outcome"  // an error or a panic after the outcome was committed
)

// Event is an event of the engine. It never contains a key, a scope or a body: ID
// is a hash of them.
type Event struct {
	Kind      EventKind
	Operation string
	ID        store.ID
	Attempt   uint32
	State     store.State
	Err       error
	Elapsed   time.Duration // since the attempt began, if there is one
}

// Alarm reports whether an operator must act.
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

// emitter sends events to the Observer, if there is one.
type emitter struct{ observer Observer }

func (o emitter) observe(ctx context.Context, e Event) {
	if o.observer != nil {
		o.observer.Observe(ctx, e)
	}
}

// emit emits an event about a record.
func (o emitter) emit(ctx context.Context, kind EventKind, r store.Record, err error) {
	if o.observer != nil {
		o.observe(ctx, Event{Kind: kind, Operation: r.Operation, ID: r.ID, Attempt: r.Attempt, State: r.State, Err: err})
	}
}
