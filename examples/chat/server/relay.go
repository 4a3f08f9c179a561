package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/outbox"
)

// groupTopic is the topic of the events in the outbox. The aggregate is the group, whose row
// each writer locks, so the events of a group are published in the order of their changes.
const groupTopic = "group"

// busName is the exchange of RabbitMQ and the channel of PostgreSQL.
const busName = "chat_events"

// The values of flag -bus that are no URL.
const (
	busAuto  = "auto"
	busLocal = "local"
)

// closableBus is a bus with a connection.
type closableBus interface {
	bus.Bus
	Close()
}

// localBus is a bus within this process.
type localBus struct{ bus.Local }

func (*localBus) Close() {}

// openBus returns the bus of flag -bus. It connects when it is used.
func openBus(c config) (closableBus, error) {
	address := c.bus
	if address == busAuto && isPostgres(c.db) {
		address = c.db
	}
	switch {
	case isPostgres(address):
		return bus.NewPostgres(address, busName)
	case address == busAuto || address == busLocal:
		return new(localBus), nil
	default:
		return bus.NewRabbitMQ(address, busName), nil
	}
}

// checkBus validates flag -bus. Its error contains no password.
func (c *config) checkBus() error {
	if c.bus == busAuto || c.bus == busLocal || isPostgres(c.bus) {
		return nil
	}
	if u, err := url.Parse(c.bus); err == nil && (u.Scheme == "amqp" || u.Scheme == "amqps") {
		if _, err := amqp091.ParseURI(c.bus); err == nil {
			return nil
		}
	}
	return errors.New("invalid value for -bus: want auto, local, amqp://user:password@host:port/vhost or postgres://user@host/name")
}

// publishChange appends the event of a change in the transaction that makes it. Writers never
// talk to the bus: the relay does, after the commit.
func (s *app) publishChange(ctx context.Context, tx chatdb.Tx, c chatdb.Change) error {
	payload, err := json.Marshal(c.Frame)
	if err != nil {
		return fmt.Errorf("encode change %d of group %s: %w", c.Number, c.Group, err)
	}
	kind := "message"
	if frame, ok := c.Frame.(chatdb.GroupFrame); ok {
		kind = frame.Push
	}
	event := outbox.Event{Topic: groupTopic, Aggregate: c.Group, Type: kind, Payload: payload}
	if err := outbox.AppendTx(ctx, s.queue, tx, event); err != nil {
		return err
	}
	// The transaction is one of these engines or of transact, which wakes the relays itself.
	if !adapter.AfterTx(ctx, s.queue, s.wakeRelays) {
		adapter.AfterTx(ctx, s.engine, s.wakeRelays)
	}
	return nil
}

// relayed publishes an event of the outbox on the bus.
func (s *app) relayed(ctx context.Context, m outbox.Message) error {
	e, err := bus.GroupEvent(m.ID, m.Type, m.Aggregate, m.Payload)
	if err != nil {
		return outbox.Permanent(err)
	}
	return s.bus.Publish(ctx, e)
}

// newRelay returns the relay of this server. All servers share the lanes of the outbox.
func newRelay(s *app, to hooks) (*outbox.Relay, error) {
	publisher := wrapped[outbox.Publisher](to.Publish, outbox.PublisherFunc(s.relayed))
	return outbox.NewRelay(s.queue, publisher, outbox.Options{Lease: s.config.lease})
}

// wakeRelays wakes the relays of all servers: the event may be in a lane of another one.
func (s *app) wakeRelays() {
	outbox.Kick(s.queue)
	select {
	case s.woken <- struct{}{}:
	default: // the last one is not sent yet
	}
}

// waking wakes the relays after a transaction.
func (s *app) waking(transact transactFunc) transactFunc {
	return func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error {
		defer s.wakeRelays()
		return transact(ctx, fn)
	}
}

// wakeUps sends the wake-ups of this server to the others until ctx ends. Those of a short time
// are one. Lost ones only delay an event until the next poll.
func (s *app) wakeUps(ctx context.Context) {
	const together = 5 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
		if err := s.bus.Publish(ctx, bus.Event{Type: eventWake}); err != nil && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "other relays were not woken", slog.String("error", err.Error()))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(together):
		}
	}
}

// eventWake is the type of the events of wakeUps.
const eventWake = "wake"

// liveBus is the bus as package live sees it: wake-ups are for the relay.
type liveBus struct {
	bus.Bus

	wake func()
}

// Subscribe implements [bus.Bus].
func (b liveBus) Subscribe(ctx context.Context, f func(bus.Event)) error {
	return b.Bus.Subscribe(ctx, func(e bus.Event) {
		if e.Type == eventWake {
			b.wake()
			return
		}
		f(e)
	})
}
