package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
)

// request is a frame of a client.
type request struct {
	ID     json.RawMessage `json:"id"`
	Op     string          `json:"op"`
	Token  string          `json:"token"`
	Ticket string          `json:"ticket"`
	Group  string          `json:"group"`
	After  int64           `json:"after"`
	Key    string          `json:"key"`
	Text   string          `json:"text"`
	Seq    int64           `json:"seq"`
	Users  []int64         `json:"users"`
}

const (
	maxID      = 64  // bytes of a request's id
	maxWatched = 500 // users whose presence one session may follow
)

// parse reads a frame. The id is a number or a string.
func parse(data []byte) (request, *Error) {
	var r request
	if err := json.Unmarshal(data, &r); err != nil {
		return request{}, &Error{Code: "bad_frame", Message: err.Error()}
	}
	if len(r.ID) > maxID || len(r.ID) > 0 && (r.ID[0] == '{' || r.ID[0] == '[') {
		return request{}, &Error{Code: "bad_frame", Message: "id must be a number or a string of at most 64 bytes"}
	}
	return r, nil
}

type answer struct {
	ID    json.RawMessage `json:"id"`
	OK    any             `json:"ok,omitempty"`
	Error *Error          `json:"err,omitempty"`
}

func accept(id json.RawMessage, ok any) *hub.Frame { return hub.FrameOf(answer{ID: id, OK: ok}) }

func refuse(id json.RawMessage, err *Error) *hub.Frame {
	return hub.FrameOf(answer{ID: id, Error: err})
}

// hello is the answer to the first frame.
type hello struct {
	Push      string `json:"push,omitempty"` // of server-sent events
	User      int64  `json:"user"`
	Name      string `json:"name"`
	Session   string `json:"session"`
	Heartbeat int64  `json:"heartbeat_ms"`
	Epoch     string `json:"epoch"`
}

func (s *Server) welcome(caller Identity) hello {
	return hello{User: caller.User, Name: caller.Name, Session: caller.Session, Heartbeat: s.options.Heartbeat.Milliseconds(), Epoch: s.epoch}
}

func (s *Server) authenticate(ctx context.Context, c Credentials) (Identity, *Error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	caller, err := s.backend.Authenticate(ctx, c)
	if err != nil {
		return Identity{}, s.errorOf("authenticate", err)
	}
	return caller, nil
}

// errorOf returns the error that the client receives. Errors other than *Error are logged.
func (s *Server) errorOf(op string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	s.options.Log.Warn("an operation failed", slog.String("op", op), slog.Any("error", err))
	return &Error{Code: "internal", Message: "the server failed; try again", Temporary: true, RetryAfter: time.Second.Milliseconds()}
}

// handle answers one frame. It reports whether the connection goes on.
func (c *conn) handle(data []byte) bool {
	r, bad := parse(data)
	if bad != nil {
		c.reject(int(websocket.StatusInvalidFramePayloadData), "bad frame")
		return false
	}
	if wait, ok := c.server.frames.Allow(c.caller.key(), time.Now()); !ok {
		c.refused++
		if c.refused > maxRefused {
			c.reject(int(websocket.StatusPolicyViolation), "rate limit")
			return false
		}
		c.session.Send(refuse(r.ID, rateLimited(wait)))
		return true
	}
	c.refused = 0
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	ok, err := c.call(ctx, r)
	if err != nil {
		failed := c.server.errorOf(r.Op, err)
		c.session.Send(refuse(r.ID, failed))
		if failed.Code == Unauthenticated {
			c.server.hub.Revoke(c.caller.User, c.caller.Session)
		}
		return true
	}
	if ok != nil {
		c.session.Send(accept(r.ID, ok))
	}
	return true
}

// rateLimited is the error of a user with too many frames.
func rateLimited(wait time.Duration) *Error {
	return &Error{codeRateLimited, "the user sends too many frames", true, wait.Milliseconds() + 1}
}

const codeRateLimited = "rate_limited"

// maxRefused is how many frames in a row may be above the rate limit.
const maxRefused = 100

// call returns the result, or nil if the answer has been sent.
func (c *conn) call(ctx context.Context, r request) (any, error) {
	if err := checkGroup(r.Group); err != nil {
		return nil, err
	}
	switch r.Op {
	case "ping":
		return struct{}{}, nil
	case "subscribe":
		return nil, c.subscribe(ctx, r)
	case "unsubscribe":
		topic := bus.GroupTopic(r.Group)
		c.session.Unsubscribe(topic)
		c.groups = slices.DeleteFunc(c.groups, func(other string) bool { return other == topic })
		return struct{}{}, nil
	case "send":
		message, err := c.server.backend.Send(ctx, c.caller, r.Group, r.Key, r.Text)
		return map[string]json.RawMessage{"message": message}, err
	case "read":
		seq, moved, err := c.server.backend.MarkRead(ctx, c.caller, r.Group, r.Seq)
		if err != nil {
			return nil, err
		}
		if !moved {
			return struct{}{}, nil
		}
		return struct{}{}, c.server.volatile(Read(ctx, c.server.bus, r.Group, c.caller.User, seq))
	case "typing":
		return struct{}{}, c.typing(ctx, r.Group)
	case "presence":
		return c.presence(ctx, r.Users)
	default:
		return nil, &Error{Code: "unknown_op", Message: fmt.Sprintf("unknown op %q", r.Op)}
	}
}

// checkGroup refuses what a database may not be able to read or store.
func checkGroup(group string) error {
	if !utf8.ValidString(group) || strings.ContainsRune(group, 0) {
		return &Error{Code: "not_found", Message: "no group has this ID"}
	}
	return nil
}

// subscribe holds the group's events, reads what the client has missed, and sends
// both in order.
func (c *conn) subscribe(ctx context.Context, r request) error {
	topic := bus.GroupTopic(r.Group)
	if !slices.Contains(c.groups, topic) {
		if len(c.groups) >= c.server.options.MaxGroups {
			return &Error{Code: "too_many_groups", Message: fmt.Sprintf("a session subscribes to at most %d groups", c.server.options.MaxGroups)}
		}
		c.groups = append(c.groups, topic)
	}
	c.session.Subscribe(topic)
	missed, err := c.server.backend.CatchUp(ctx, c.caller, r.Group, r.After)
	if err != nil {
		c.session.Unsubscribe(topic)
		c.groups = slices.DeleteFunc(c.groups, func(other string) bool { return other == topic })
		return err
	}
	c.session.Recovered(topic, missed.Change, accept(r.ID, missed))
	return nil
}

// volatile drops the error of an event that may be lost.
func (s *Server) volatile(err error) error {
	if err != nil {
		s.options.Log.Info("a volatile event was not published", slog.Any("error", err))
	}
	return nil
}

// typing publishes that the user is typing, if the session is subscribed: the hub
// knows its members without a query.
func (c *conn) typing(ctx context.Context, group string) error {
	subscribed := make(chan bool, 1)
	c.session.IfSubscribed(bus.GroupTopic(group), func(is bool) { subscribed <- is })
	select {
	case is := <-subscribed:
		if !is {
			return &Error{Code: "not_subscribed", Message: "subscribe to the group first"}
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	return c.server.volatile(typing(ctx, c.server.bus, group, c.caller.User))
}

// presence replaces the users that the session follows by the given users, if the caller may
// follow them.
func (c *conn) presence(ctx context.Context, users []int64) (any, error) {
	if len(users) > maxWatched {
		return nil, &Error{Code: "too_many_users", Message: fmt.Sprintf("a session follows at most %d users", maxWatched)}
	}
	s := c.server
	before := s.checks.changes.Load()
	open, err := s.backend.OpenSessions(ctx, []string{c.caller.Session})
	if err != nil {
		return nil, err
	}
	if len(open) == 0 {
		return nil, &Error{Code: Unauthenticated, Message: "the session has ended"}
	}
	known, err := s.backend.CoMembers(ctx, c.caller.User)
	if err != nil {
		return nil, err
	}
	users = slices.DeleteFunc(users, func(user int64) bool { return !slices.Contains(known, user) })
	for _, user := range c.watched {
		if !slices.Contains(users, user) {
			c.session.Unsubscribe(presenceTopic(user))
		}
	}
	c.watched = users
	for _, user := range users {
		c.session.Watch(presenceTopic(user))
	}
	if s.checks.changes.Load() != before {
		s.checks.add(func(r *pendingChecks) { r.removed([]int64{c.caller.User}) })
	}
	return map[string]any{"users": s.presence.of(users)}, nil
}
