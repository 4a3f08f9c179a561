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

// Topics of the events in the outbox.
const (
	// groupTopic has the changes of groups. The aggregate is the group, whose row each writer
	// locks, so the events of a group are published in the order of their changes.
	groupTopic = "group"
	// sessionTopic has the ends of sessions. The aggregate is the session.
	sessionTopic = "session"
)

// publishChange appends the event of a change in the transaction that makes it.
func (s *app) publishChange(ctx context.Context, tx chatdb.Tx, c chatdb.Change) error {
	payload, err := json.Marshal(c.Frame)
	if err != nil {
		return fmt.Errorf("encode change %d of group %s: %w", c.Number, c.Group, err)
	}
	kind := "message"
	if frame, ok := c.Frame.(chatdb.GroupFrame); ok {
		kind = frame.Push
	}
	return s.appendEvent(ctx, tx, outbox.Event{Topic: groupTopic, Aggregate: c.Group, Type: kind, Payload: payload})
}

// publishRevoked appends the event that closes the streams of a session.
func (s *app) publishRevoked(ctx context.Context, tx chatdb.Tx, user int64, session string) error {
	payload, err := json.Marshal(endedSession{user})
	if err != nil {
		return fmt.Errorf("encode the end of session %s: %w", session, err)
	}
	return s.appendEvent(ctx, tx, outbox.Event{Topic: sessionTopic, Aggregate: session, Type: bus.Revoked, Payload: payload})
}

// endedSession is the payload of an event of sessionTopic.
type endedSession struct {
	User int64 `json:"user"`
}

// appendEvent appends an event. Writers never talk to the bus: the relay does, after the commit.
func (s *app) appendEvent(ctx context.Context, tx chatdb.Tx, e outbox.Event) error {
	if err := outbox.AppendTx(ctx, s.queue, tx, e); err != nil {
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
	e, err := busEvent(m)
	if err != nil {
		return outbox.Permanent(err)
	}
	return s.bus.Publish(ctx, e)
}

// busEvent returns the event of the bus for an event of the outbox.
func busEvent(m outbox.Message) (bus.Event, error) {
	if m.Topic != sessionTopic {
		return bus.GroupEvent(m.ID, m.Type, m.Aggregate, m.Payload)
	}
	var revoked endedSession
	if err := json.Unmarshal(m.Payload, &revoked); err != nil {
		return bus.Event{}, fmt.Errorf("decode payload of event %s: %w", m.ID, err)
	}
	return bus.RevokedEvent(m.ID, revoked.User, m.Aggregate), nil
}

// newRelay returns the relay of this server. All servers share the lanes of the outbox.
func newRelay(s *app, to hooks) (*outbox.Relay, error) {
	publisher := wrapped[outbox.Publisher](to.Publish, outbox.PublisherFunc(s.relayed))
	return outbox.NewRelay(s.queue, publisher, outbox.Options{
		Lease: s.config.lease,
		Probe: func(ctx context.Context) error { return s.bus.Publish(ctx, bus.Event{Type: eventWake}) },
	})
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
	failing := false // the first failure of a row is logged
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.woken:
		}
		err := s.bus.Publish(ctx, bus.Event{Type: eventWake})
		if err != nil && !failing && ctx.Err() == nil {
			s.log.LogAttrs(ctx, slog.LevelInfo, "other relays were not woken", slog.String("error", err.Error()))
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(together):
		}
	}
}
