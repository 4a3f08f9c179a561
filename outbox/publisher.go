package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
)

// Publisher sends messages to a broker.
type Publisher interface {
	// Publish returns nil when the broker has confirmed the message, so that the message
	// survives the failures that the broker promises to survive. After an error the message is published again,
	// with the same ID. Publish is called concurrently for different aggregates, and must
	// return soon after ctx has ended.
	//
	// An error that is not marked [Permanent] is taken for a fault of the broker until
	// other messages succeed.
	Publish(ctx context.Context, m Message) error
}

// PublisherFunc is a function that is a Publisher.
type PublisherFunc func(ctx context.Context, m Message) error

// Publish calls f.
func (f PublisherFunc) Publish(ctx context.Context, m Message) error { return f(ctx, m) }

// Message is an event as it is published.
type Message struct {
	Event

	// ID is a UUID that no other event has. It is the same each time the event is
	// published, so receivers can recognise a repetition by it.
	ID string
	// Age is the time since the event was appended, by the database's clock.
	Age time.Duration
}

// Permanent marks an error that retries cannot mend, for example of a message that is
// larger than the broker accepts. The aggregate is parked at once. Nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

// Error returns the text of the marked error.
func (p *permanentError) Error() string { return p.err.Error() }

// Unwrap returns the marked error.
func (p *permanentError) Unwrap() error { return p.err }

func isPermanent(err error) bool {
	_, permanent := errtype.Find[*permanentError](err)
	return permanent
}

// messageOf returns the message of a row.
func messageOf(r *store.OutboxEvent) (Message, error) {
	m := Message{ID: r.ID, Age: r.Age, Event: Event{Topic: r.Topic, Aggregate: r.Aggregate, Type: r.Type, Payload: r.Payload}}
	if err := json.Unmarshal([]byte(r.Headers), &m.Headers); err != nil {
		return m, Permanent(fmt.Errorf("decode the headers: %w", err))
	}
	return m, nil
}

// publish publishes a row. A panic is an error, because a message that panics must not
// stop the process again and again.
func (r *Relay) publish(ctx context.Context, row *store.OutboxEvent) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	defer recoverTo("publisher", &err)
	m, err := messageOf(row)
	if err != nil {
		return err
	}
	return r.publisher.Publish(adapter.ExtractTrace(ctx, r.engine, m.Headers), m)
}

// recoverTo makes a panic an error.
func recoverTo(of string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the %s panicked: %v\n%s", of, p, debug.Stack())
	}
}

// probe finds out whether the broker takes messages, when an event has failed again and nothing was
// confirmed since its failure before.
func (l *lane) probe(before *failure) {
	if l.relay.options.Probe == nil || before == nil || before.accepted != l.relay.accepted.Load() {
		return
	}
	if l.callProbe() == nil {
		l.relay.accepted.Add(1)
		l.relay.breaker.succeeded()
	}
}

func (l *lane) callProbe() (err error) {
	ctx, cancel := context.WithTimeout(l.attempt.Context(), l.relay.options.Timeout)
	defer cancel()
	defer recoverTo("probe", &err)
	return l.relay.options.Probe(ctx)
}
