package event

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

// Kind is the kind of an [Event]. The values are stable names.
type Kind string

// The kinds of events. An operator must act on those marked "alarm";
// docs/operations.md says how.
const (
	Claimed      Kind = "claimed"        // became the leader
	Takeover     Kind = "takeover"       // became the leader of an expired attempt
	Replayed     Kind = "replayed"       // answered from the record
	Waited       Kind = "waited"         // waited for the leader; Elapsed is the time
	Mismatch     Kind = "mismatch"       // refused: the key belongs to another request
	Released     Kind = "released"       // released: the key may be tried again
	Succeeded    Kind = "succeeded"      // outcome recorded
	Failed       Kind = "failed"         // failure recorded
	Rejected     Kind = "rejected"       // a message's handler rejected it for good; it is a dead letter
	Exhausted    Kind = "exhausted"      // alarm: attempts used up, Failed or InDoubt; it is a dead letter
	InDoubt      Kind = "in_doubt"       // alarm: the effect is unknown; an operator or a probe must resolve it
	Healed       Kind = "healed"         // completed by evidence
	Settled      Kind = "settled"        // completed by its late leader
	LeaseLost    Kind = "lease_lost"     // the handler's context was cancelled
	Fenced       Kind = "fenced"         // a zombie's change was superseded
	Conflict     Kind = "conflict"       // alarm: an effect that no later attempt knows of
	AmbiguousYes Kind = "commit_proven"  // a commit with a lost reply was applied
	AmbiguousNo  Kind = "commit_refuted" // a commit with a lost reply was not applied, and never will be
	Tombstone    Kind = "tombstone"      // succeeded, but the result cannot be stored
	Altered      Kind = "result_altered" // alarm: succeeded, but JSON lost a part of the result
	Late         Kind = "late"           // alarm: an outcome could not be recorded yet
	LateRecorded Kind = "late_recorded"  // a late outcome was recorded
	LateDropped  Kind = "late_dropped"   // alarm: the engine gave up recording it
	Swept        Kind = "swept"          // the sweeper settled an expired attempt
	Resolved     Kind = "resolved"       // resolved by an operator
	Cancelled    Kind = "cancelled"      // cancelled before it ran
	Redriven     Kind = "redriven"       // an operator redrove a dead letter
	Retried      Kind = "retried"        // a transaction is retried after a conflict
	StoreError   Kind = "store_error"    // the store did not answer; the call is repeated
	NotDurable   Kind = "not_durable"    // alarm: the store may lose records that it has confirmed; Err names the setting
	Parked       Kind = "parked"         // alarm: an event of an outbox cannot be published; the later events of its aggregate wait
	AfterOutcome Kind = "after_outcome"  // an error or a panic after the outcome was committed
)

// Event is an event of the engine. It never contains a key, a scope or a body: ID
// is a hash of them.
type Event struct {
	Kind      Kind
	Operation string
	ID        store.ID
	Attempt   uint32
	State     store.State
	Err       error
	Elapsed   time.Duration // since the attempt or the wait began, if there is one
}

// Alarm reports whether an operator must act.
func (e Event) Alarm() bool {
	switch e.Kind {
	case InDoubt, Exhausted, Conflict, Late, LateDropped, NotDurable, Altered, Parked:
		return true
	default:
		return false
	}
}

// Slog logs every event to l. Alarms are errors. Warnings are takeovers,
// records that the sweeper freed, mismatches, rejected messages, tombstones, lost
// leases, fenced attempts and store errors. Failures, attempts that are tried again
// and what operators do are logged at Info; claims, replays, successes and snoozes at
// Debug. docs/operations.md has the table. Keys appear only as the record's ID, which
// is a hash.
func Slog(l *slog.Logger) Observer { return slogObserver{l} }

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
