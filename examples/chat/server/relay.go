package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/chatdb"
	"github.com/semelgo/semel/outbox"
)

// groupTopic is the topic of the events in the outbox. The aggregate is the group, whose row
// each writer locks, so the events of a group are published in the order of their changes.
const groupTopic = "group"

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

// wakeRelays wakes the relays of all servers: the lane of the event may belong to another server.
func (s *app) wakeRelays() {
	outbox.Kick(s.queue)
	select {
	case s.woken <- struct{}{}:
	default: // the previous wake-up is not sent yet
	}
}

// waking wakes the relays after a transaction.
func (s *app) waking(transact transactFunc) transactFunc {
	return func(ctx context.Context, fn func(ctx context.Context, tx chatdb.Tx) error) error {
		defer s.wakeRelays()
		return transact(ctx, fn)
	}
}

// wakeUps sends the wake-ups of this server to the others until ctx ends. It combines the
// wake-ups of a short time. A lost wake-up only delays an event until the next poll.
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
