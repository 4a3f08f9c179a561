package outbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// Stats are the numbers of an outbox.
type Stats struct {
	// Events is the number of events that are to be published: the lag.
	Events int64
	// Oldest is the age of the oldest of them.
	Oldest time.Duration
	// ParkedAggregates is the number of parked aggregates, and ParkedEvents that of their
	// events, as far as a relay has found them.
	ParkedAggregates, ParkedEvents int64
}

// StatsOf counts the events of the outbox of e. It reads all of them, so it is not for
// every request.
func StatsOf[Tx any](ctx context.Context, e *semel.Engine[Tx]) (Stats, error) {
	table := adapter.OutboxOf(e)
	if table == nil {
		return Stats{}, errNoOutbox
	}
	c, err := table.Counts(ctx)
	if err != nil {
		return Stats{}, unavailable(err)
	}
	return Stats{Events: c.Events, Oldest: c.Oldest, ParkedAggregates: c.Aggregates, ParkedEvents: c.Parked}, nil
}

// Parked is an aggregate whose events are kept and not published.
type Parked struct {
	Topic, Aggregate string
	// EventID and EventType are those of the event that could not be published, and
	// Failures the number of its failures that were counted. Reason is the last error.
	EventID, EventType string
	Failures           int
	Reason             string
	Age                time.Duration // since it was parked
	Events             int64         // that are kept, with that one
	Redriven           bool          // [Redrive] was called; a relay will end the parking
}

// ParkedOf lists at most limit parked aggregates, first parked first.
func ParkedOf[Tx any](ctx context.Context, e *semel.Engine[Tx], limit int) ([]Parked, error) {
	table := adapter.OutboxOf(e)
	if table == nil {
		return nil, errNoOutbox
	}
	rows, err := table.ParkedAggregates(ctx, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	all := make([]Parked, len(rows))
	for i, r := range rows {
		all[i] = Parked{
			Topic: r.Topic, Aggregate: r.Aggregate, EventID: r.ID, EventType: r.Type,
			Failures: r.Failures, Reason: r.Reason, Age: r.Age, Events: r.Events, Redriven: r.Parking != store.Parked,
		}
	}
	return all, nil
}

// RedriveRequest is an operator's decision to publish the events of a parked aggregate.
type RedriveRequest struct {
	Topic, Aggregate string
	// EventID is the event that the decision is about, as in [Parked]: if the aggregate is parked because
	// of another event by now, nothing changes. Empty: any event.
	EventID string
	// Drop deletes the event that failed, so that it is never published. It needs the EventID: another
	// operator may have redriven the aggregate, and another of its events may have failed.
	Drop bool
	// Actor and Reason are the operator and the reason. Both are required, and kept for
	// ever: see [NotesOf].
	Actor, Reason string
}

// Redrive has the events of a parked aggregate published, beginning with the one that
// failed, and reports whether the aggregate was parked because of that event. A relay does so at its
// next poll, and counts the failures of that event from zero. The note about the decision is kept in
// the same transaction. A missing Actor or Reason, and an EventID that Drop needs, are a *semel.FieldError.
func Redrive[Tx any](ctx context.Context, e *semel.Engine[Tx], r RedriveRequest) (bool, error) {
	table := adapter.OutboxOf(e)
	switch {
	case table == nil:
		return false, errNoOutbox
	case strings.TrimSpace(r.Actor) == "":
		return false, invalid("Actor", "is empty")
	case strings.TrimSpace(r.Reason) == "":
		return false, invalid("Reason", "is empty")
	case r.Drop && r.EventID == "":
		return false, invalid("EventID", "is empty, and Drop deletes an event")
	}
	decision := store.OutboxRedrive{Topic: r.Topic, Aggregate: r.Aggregate, EventID: r.EventID, To: store.Redriving, Actor: r.Actor, Reason: r.Reason}
	if r.Drop {
		decision.To = store.Dropping
	}
	was, err := table.Redrive(ctx, decision)
	if err != nil {
		return false, unavailable(err)
	}
	Kick(e)
	return was, nil
}

// Note is an operator's decision on a parked aggregate, made with [Redrive] or with the
// program semel.
type Note struct {
	Topic, Aggregate   string
	EventID, EventType string // of the event that could not be published
	Dropped            bool   // that event was deleted
	Actor, Reason      string
	Age                time.Duration // since the decision
}

// NotesOf lists at most limit decisions, the newest first.
func NotesOf[Tx any](ctx context.Context, e *semel.Engine[Tx], limit int) ([]Note, error) {
	table := adapter.OutboxOf(e)
	if table == nil {
		return nil, errNoOutbox
	}
	rows, err := table.Notes(ctx, limit)
	if err != nil {
		return nil, unavailable(err)
	}
	all := make([]Note, len(rows))
	for i, r := range rows {
		all[i] = Note{
			Topic: r.Topic, Aggregate: r.Aggregate, EventID: r.ID, EventType: r.Type, Dropped: r.To == store.Dropping,
			Actor: r.Actor, Reason: r.Reason, Age: r.Age,
		}
	}
	return all, nil
}

func unavailable(err error) error { return fmt.Errorf("%w: outbox: %w", semel.ErrUnavailable, err) }

// reasonOf returns the text of an error as it is stored.
func reasonOf(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
}
