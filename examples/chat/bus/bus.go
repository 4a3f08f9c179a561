// Package bus carries events from the relay, and from servers, to all servers.
//
// A bus may lose and repeat events. It keeps the order of the events of one
// publisher. A subscriber receives an event of type Missed at first, and after each
// loss that the bus can notice, such as a lost connection.
package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// Types of events that are not pushes to clients.
const (
	// Missed says that this subscriber may have missed earlier events. It has no
	// other fields.
	Missed = "missed"
	// Revoked says that Session of the user in Users was revoked.
	Revoked = "revoked"
	// Presence has the payload of package live.
	Presence = "presence"
)

// Event is a push frame with its audience.
type Event struct {
	ID    string `json:"id,omitempty"`    // of the outbox event; empty: not from the outbox
	Topic string `json:"topic,omitempty"` // such as "group:7c0f…"
	Type  string `json:"type,omitempty"`
	// Change is the group's change number. Zero: the event is not a change.
	Change int64 `json:"change,omitempty"`
	// Payload is the push frame, as clients receive it.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Users receive the event without a subscription.
	Users []int64 `json:"users,omitempty"`
	// Removed lose their subscription to the topic after the event.
	Removed []int64 `json:"removed,omitempty"`
	Session string  `json:"session,omitempty"`
}

// Publisher publishes events.
type Publisher interface {
	// Publish returns nil when the bus has taken the event. After an error the
	// event may have been published.
	Publish(ctx context.Context, e Event) error
}

// Bus connects servers.
type Bus interface {
	Publisher
	// Subscribe calls f with each event, of this server too, one at a time, until
	// ctx ends; it then returns the context's error. It reconnects by itself.
	Subscribe(ctx context.Context, f func(Event)) error
}

// GroupTopic is the topic of a group's events.
func GroupTopic(group string) string { return "group:" + group }

// GroupEvent returns the event for an outbox event of a group, whose payload is a
// push frame. The members in its fields added, removed and audience receive it
// without a subscription.
func GroupEvent(id, kind, group string, payload []byte) (Event, error) {
	var frame struct {
		Change   int64   `json:"change"`
		Added    []int64 `json:"added"`
		Removed  []int64 `json:"removed"`
		Audience []int64 `json:"audience"`
	}
	if err := json.Unmarshal(payload, &frame); err != nil {
		return Event{}, fmt.Errorf("decode payload of event %s: %w", id, err)
	}
	users := append(append(frame.Audience, frame.Added...), frame.Removed...)
	return Event{
		ID: id, Topic: GroupTopic(group), Type: kind, Change: frame.Change, Payload: payload, Users: users, Removed: frame.Removed,
	}, nil
}

// RevokedEvent returns the event that closes the streams of a session. id is that of the
// outbox event.
func RevokedEvent(id string, user int64, session string) Event {
	return Event{ID: id, Type: Revoked, Users: []int64{user}, Session: session}
}

// Local is a bus within one process. The zero value is usable. Publish returns
// after the subscribers have handled the event.
type Local struct {
	mu          sync.Mutex
	subscribers map[*subscriber]struct{}
}

type subscriber struct{ handle func(Event) }

// Publish calls all subscribers.
func (l *Local) Publish(_ context.Context, e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subscribers {
		s.handle(e)
	}
	return nil
}

// Subscribe implements [Bus]. f must not publish.
func (l *Local) Subscribe(ctx context.Context, f func(Event)) error {
	s := &subscriber{f}
	l.mu.Lock()
	if l.subscribers == nil {
		l.subscribers = make(map[*subscriber]struct{})
	}
	l.subscribers[s] = struct{}{}
	f(Event{Type: Missed})
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	delete(l.subscribers, s)
	l.mu.Unlock()
	return ctx.Err()
}
