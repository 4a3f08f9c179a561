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
	// Failures the number of attempts. Reason is the last error.
	EventID, EventType string
	Failures           int
	Reason             string
	Age                time.Duration // since it was parked
	Events             int64         // that are kept, with that one
	Redriven           bool          // [Redrive] or [Drop] was called; a relay will end the parking
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

// Redrive has the events of a parked aggregate published, beginning with the one that
// failed, and reports whether the aggregate was parked. A relay does so at its next poll.
func Redrive[Tx any](ctx context.Context, e *semel.Engine[Tx], topic, aggregate string) (bool, error) {
	return redrive(ctx, e, topic, aggregate, store.Redriving)
}

// Drop is [Redrive] without the event that failed, which is deleted.
func Drop[Tx any](ctx context.Context, e *semel.Engine[Tx], topic, aggregate string) (bool, error) {
	return redrive(ctx, e, topic, aggregate, store.Dropping)
}

func redrive[Tx any](ctx context.Context, e *semel.Engine[Tx], topic, aggregate string, to store.Parking) (bool, error) {
	table := adapter.OutboxOf(e)
	if table == nil {
		return false, errNoOutbox
	}
	was, err := table.Redrive(ctx, topic, aggregate, to)
	if err != nil {
		return false, unavailable(err)
	}
	Kick(e)
	return was, nil
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
