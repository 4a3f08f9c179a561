package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/live"
)

// backend is an application in memory: a user's token is "token-N", and every
// group has users 1 to 9.
type backend struct {
	bus bus.Bus

	mu       sync.Mutex
	messages map[string][]json.RawMessage // push frames by group, in order of change
	byKey    map[string]json.RawMessage
	read     map[string]int64
	revoked  map[string]bool
	lose     map[int64]bool // changes that are stored and not published
	onCatch  func()         // called between the subscription and the read
	alone    map[int64]bool // users that were removed from their groups
	checked  int            // the most sessions of one call of OpenSessions
	failing  int            // how many of the next calls of OpenSessions and CoMembers fail

	onCatchUp       func(group string)
	onAuthenticated func(live.Identity) // called after the session was read
}

func newBackend(b bus.Bus) *backend {
	return &backend{
		bus: b, messages: make(map[string][]json.RawMessage), byKey: make(map[string]json.RawMessage),
		read: make(map[string]int64), revoked: make(map[string]bool), lose: make(map[int64]bool),
		alone: make(map[int64]bool),
	}
}

func (b *backend) Authenticate(_ context.Context, c live.Credentials) (live.Identity, error) {
	var user int64
	if _, err := fmt.Sscanf(c.Token+c.Ticket, "token-%d", &user); err != nil {
		if c.Token == "down" {
			return live.Identity{}, errors.New("the database is down")
		}
		return live.Identity{}, &live.Error{Code: live.Unauthenticated, Message: "unknown token"}
	}
	caller := live.Identity{User: user, Name: fmt.Sprint("user", user), Session: fmt.Sprint("session-", user)}
	if b.onAuthenticated != nil {
		b.onAuthenticated(caller)
	}
	return caller, nil
}

// revoke revokes sessions without an event.
func (b *backend) revoke(sessions ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, session := range sessions {
		b.revoked[session] = true
	}
}

// mostChecked returns the most sessions that one call has checked.
func (b *backend) mostChecked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.checked
}

// down makes the next n calls of OpenSessions and CoMembers fail.
func (b *backend) down(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = n
}

func (b *backend) OpenSessions(_ context.Context, sessions []string) ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked = max(b.checked, len(sessions))
	if b.failing > 0 {
		b.failing--
		return nil, errors.New("the database is down")
	}
	return slices.DeleteFunc(slices.Clone(sessions), func(id string) bool { return b.revoked[id] }), nil
}

func (b *backend) member(caller live.Identity, group string) error {
	if b.revoked[caller.Session] {
		return &live.Error{Code: live.Unauthenticated, Message: "the session was revoked"}
	}
	if caller.User > 9 || !strings.HasPrefix(group, "g") {
		return &live.Error{Code: "not_found", Message: "no such group"}
	}
	return nil
}

func (b *backend) CatchUp(_ context.Context, caller live.Identity, group string, after int64) (live.CatchUp, error) {
	b.mu.Lock()
	catch := b.onCatch
	b.onCatch = nil
	b.mu.Unlock()
	if catch != nil {
		catch()
	}
	b.mu.Lock()
	if b.onCatchUp != nil {
		b.onCatchUp(group)
	}
	defer b.mu.Unlock()
	if err := b.member(caller, group); err != nil {
		return live.CatchUp{}, err
	}
	missed := slices.Clone(b.messages[group][min(int(after), len(b.messages[group])):])
	if len(missed) > 500 {
		return live.CatchUp{Change: int64(len(b.messages[group]))}, nil
	}
	all, err := json.Marshal(missed)
	return live.CatchUp{Recovered: true, Change: int64(len(b.messages[group])), Messages: all}, err
}

func (b *backend) Send(ctx context.Context, caller live.Identity, group, key, text string) (json.RawMessage, error) {
	if text == "bug" {
		panic("a bug in the application")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.member(caller, group); err != nil {
		return nil, err
	}
	if m, ok := b.byKey[key]; ok {
		return m, nil
	}
	change := int64(len(b.messages[group]) + 1)
	m, err := json.Marshal(map[string]any{"seq": change, "change": change, "author_id": caller.User, "text": text})
	if err != nil {
		return nil, err
	}
	b.byKey[key], b.messages[group] = m, append(b.messages[group], m)
	if b.lose[change] {
		return m, nil
	}
	push, err := json.Marshal(map[string]any{"push": "message", "group": group, "change": change, "message": json.RawMessage(m)})
	if err != nil {
		return nil, err
	}
	e, err := bus.GroupEvent(fmt.Sprint(group, change), "message", group, push)
	if err != nil {
		return nil, err
	}
	return m, b.bus.Publish(ctx, e)
}

func (b *backend) CoMembers(_ context.Context, user int64) ([]int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing > 0 {
		b.failing--
		return nil, errors.New("the database is down")
	}
	if b.alone[user] {
		return nil, nil
	}
	return slices.DeleteFunc([]int64{1, 2, 3, 4, 5, 6, 7, 8, 9}, func(other int64) bool { return b.alone[other] }), nil
}

func (b *backend) MarkRead(_ context.Context, caller live.Identity, group string, seq int64) (int64, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	moved := seq > b.read[group]
	b.read[group] = max(seq, b.read[group])
	return b.read[group], moved, b.member(caller, group)
}
