package store

import (
	"context"
	"time"
)

// OutboxLanes is the number of lanes of an outbox. A lane has all events of some
// aggregates, and its number is part of stored rows: it never changes.
const OutboxLanes = 64

// OutboxEvent is a row of an outbox.
type OutboxEvent struct {
	// Seq is the position. Of two transactions of which the second begins to append after
	// the first has committed, the second has the larger positions.
	Seq  int64
	Lane int // 0 to OutboxLanes-1
	// ID is a UUID in its text form, which the event keeps.
	ID string
	// Topic, Aggregate and Type have at most 255 bytes of valid UTF-8 without NUL, and no
	// space at their ends.
	Topic, Aggregate, Type string
	Payload                []byte
	Headers                string        // a JSON object
	Age                    time.Duration // since the event was appended; only read
	Parking                Parking       // of the aggregate; only read
	Failures               int           // as of OutboxTx.Failed; only read
}

// Parking says whether an aggregate is parked: its events are kept, and not published.
type Parking int

// The states of an aggregate. An operator changes Parked into one of the last two; the
// holder of the lane then ends the parking.
const (
	NotParked Parking = iota
	Parked            // because the first of its events could not be published
	Redriving         // an operator wants its events to be published
	Dropping          // the same, without the event that could not be published
)

// ParkedAggregate is an aggregate whose events are not published.
type ParkedAggregate struct {
	Lane             int
	Topic, Aggregate string
	Seq              int64  // of the event that could not be published
	ID, Type         string // of the same event
	Failures         int    // that were counted
	Reason           string // the last error
	Parking          Parking
	Age              time.Duration // since it was parked; only read
	Events           int64         // the number of its events that are kept; only read, and counted late
}

// OutboxRedrive is an operator's decision on a parked aggregate.
type OutboxRedrive struct {
	Topic, Aggregate string
	// EventID is the event that the decision is about. Redrive changes nothing if the aggregate is parked
	// because of another one. Empty: any event.
	EventID       string
	To            Parking // Redriving or Dropping
	Actor, Reason string  // the operator and the reason, in the operator's words
}

// OutboxNote is a decision that was made.
type OutboxNote struct {
	OutboxRedrive

	ID, Type string        // of the event that could not be published
	Age      time.Duration // since the decision
}

// OutboxLane is a lane with work.
type OutboxLane struct {
	Lane      int
	Events    bool // it has events that are not known to be of parked aggregates
	Redriving bool // it has aggregates whose parking is to be ended
}

// OutboxCounts are numbers for reports.
type OutboxCounts struct {
	Events int64         // to be published
	Oldest time.Duration // the age of the oldest of them
	Parked int64         // events of parked aggregates that were set aside
	// Aggregates is the number of parked aggregates.
	Aggregates int64
}

// OutboxHead selects the first events of a lane.
type OutboxHead struct {
	Lane  int
	Limit int
	// Except has aggregates, as topic and aggregate, whose events are left out.
	Except [][2]string
}

// Outbox is a table of events that transactions append and a relay publishes.
//
// No method depends on the order in which transactions commit: events are read from
// the beginning of their lane, and are removed when they were published. An event whose
// position is smaller than that of removed ones is therefore still found.
type Outbox[Tx any] interface {
	OutboxReader
	// In returns the outbox within a transaction.
	In(tx Tx) OutboxTx
}

// OutboxReader reads an outbox, outside of transactions, what is committed.
type OutboxReader interface {
	// Lanes returns the lanes with work, in one round trip.
	Lanes(ctx context.Context) ([]OutboxLane, error)
	// Head returns the first events of a lane in the order of their positions.
	Head(ctx context.Context, q OutboxHead) ([]OutboxEvent, error)
	// Counts counts the events. It reads all of them.
	Counts(ctx context.Context) (OutboxCounts, error)
	// ParkedAggregates lists at most limit parked aggregates, first parked first.
	ParkedAggregates(ctx context.Context, limit int) ([]ParkedAggregate, error)
	// Redrive changes an aggregate from Parked to another parking, and keeps a note in the
	// same transaction. It reports whether there was one to change. No event has an EventID that
	// is not a UUID in its text form.
	Redrive(ctx context.Context, r OutboxRedrive) (bool, error)
	// Notes lists at most limit notes, the newest first.
	Notes(ctx context.Context, limit int) ([]OutboxNote, error)
}

// OutboxTx changes an outbox within a transaction.
//
// Only Append is for every transaction. The others are for the holder of the event's
// lane, in a transaction that commits only if the holder still has it.
type OutboxTx interface {
	// Append appends events in their order. It ignores Seq.
	Append(ctx context.Context, events []OutboxEvent) error
	// Remove removes events by their positions, and ignores missing ones.
	Remove(ctx context.Context, seqs []int64) error
	// Failed sets the number of failures of an event, and ignores a missing one.
	Failed(ctx context.Context, seq int64, failures int) error
	// Park parks an aggregate. If it is parked already, nothing changes.
	Park(ctx context.Context, p ParkedAggregate) error
	// SetAside moves events of parked aggregates out of the lane, so that Lanes and Head
	// need not skip them. They keep their positions.
	SetAside(ctx context.Context, seqs []int64) error
	// Unpark ends the parking of the aggregates of a lane that are Redriving or
	// Dropping: their events are in the lane again, in their old positions.
	Unpark(ctx context.Context, lane int) error
}

// OutboxStore is a store with an outbox in the same database, so that one transaction can
// change a record and append events.
type OutboxStore[Tx any] interface {
	// Outbox returns the outbox. Nil: there is none.
	Outbox() Outbox[Tx]
}
