// Package live serves `/v1/ws` (WebSocket, subprotocol chat.v1.json) and
// `/v1/events` (server-sent events): it authenticates clients, attaches them to a
// hub, and calls the application for everything that is stored.
//
// Delivery is best effort; see package hub for what may be lost and how clients
// notice it.
package live

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/semelgo/semel/examples/chat/accounts"
	"github.com/semelgo/semel/examples/chat/bus"
	"github.com/semelgo/semel/examples/chat/hub"
)

// Subprotocol is the WebSocket subprotocol that clients must offer.
const Subprotocol = "chat.v1.json"

// Backend is the application. Its methods may be called by many goroutines. Their
// errors are *Error for what a client should know; others are logged and answered
// as a temporary error.
type Backend interface {
	// Authenticate checks a token, or uses up a ticket: one of the two is empty. A
	// *Error means that they are not valid, and the session is closed with 3501.
	Authenticate(ctx context.Context, c Credentials) (Identity, error)
	// CatchUp returns the changes of a group after the given one, if the user is a
	// member.
	CatchUp(ctx context.Context, caller Identity, group string, after int64) (CatchUp, error)
	// Send stores a message, with the operation and the key of the HTTP request, and
	// returns it as JSON.
	Send(ctx context.Context, caller Identity, group, key, text string) (json.RawMessage, error)
	// OpenSessions returns those of the sessions that have not ended. One call has at most 500.
	OpenSessions(ctx context.Context, sessions []string) ([]string, error)
	// CoMembers returns the users that share a group with the user: these may follow the
	// presence of one another.
	CoMembers(ctx context.Context, user int64) ([]int64, error)
	// MarkRead moves the read marker forward, and returns the stored one and whether it has moved.
	MarkRead(ctx context.Context, caller Identity, group string, seq int64) (read int64, moved bool, err error)
}

// Credentials are what a client has sent.
type Credentials struct{ Token, Ticket string }

// credentialsOf returns the credentials of a request: those of a program are in a header.
func credentialsOf(r *http.Request) Credentials {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return Credentials{token, r.URL.Query().Get("ticket")}
}

// Identity is an authenticated session.
type Identity struct {
	User    int64
	Name    string
	Session string
}

// key is the user's key in a limiter.
func (i Identity) key() string { return strconv.FormatInt(i.User, 10) }

// CatchUp are the changes that a client has missed.
type CatchUp struct {
	// Recovered is false if there are too many; the client then pages over HTTP.
	Recovered bool  `json:"recovered"`
	Change    int64 `json:"change"` // the group's last change
	// Messages is the array of changed messages, ordered by change.
	Messages json.RawMessage `json:"messages,omitempty"`
}

// Error is an error that the client receives.
type Error struct {
	Code       string `json:"code"`
	Message    string `json:"message"`
	Temporary  bool   `json:"temporary"`
	RetryAfter int64  `json:"retry_after_ms,omitempty"`
}

// Error returns code and message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unauthenticated is the code of an error of Backend after which the session is
// closed with 3502, because it was revoked.
const Unauthenticated = "unauthenticated"

// Options configure a server. The zero value is usable.
type Options struct {
	Hub hub.Options // Presence and Silence are set by the server
	// Origins are patterns of hosts, besides the server's own, whose pages may open
	// a WebSocket.
	Origins []string
	// Heartbeat is how often clients must send a frame, a ping at least. Default: 25
	// seconds. A session that is silent for three of them is closed.
	Heartbeat time.Duration
	// MaxMessage limits a frame of a client. Default: 64 KiB.
	MaxMessage int64
	// Rate and Burst limit the frames of all WebSockets of one user, per second and at
	// once. Defaults: 40 and 120.
	Rate, Burst float64
	// MaxSilent and MaxSilentFrom limit the WebSockets that have not said hello: in total and
	// of one address. A further one receives 503 or 429. A WebSocket with a token in its header, or
	// a ticket in its URL, is authenticated at once and does not count. Defaults: 2000 and 200.
	MaxSilent, MaxSilentFrom int
	// Address returns the address of a client. Default: that of the connection.
	Address func(*http.Request) string
	// MaxGroups limits the subscriptions of one WebSocket. Default: 1000.
	MaxGroups int
	// MaxEventGroups limits the groups of one stream of server-sent events. Default: 100.
	MaxEventGroups int
	// WriteTimeout limits one write to a client. Default: 10 seconds.
	WriteTimeout time.Duration
	// Lease is how long other servers consider a user online after the last
	// renewal. Default: 30 seconds.
	Lease time.Duration
	// Check is how often all open sessions are checked in the database, besides after each
	// loss of the bus. Default: 1 minute.
	Check time.Duration
	// Log receives errors of the application. Default: none.
	Log *slog.Logger
}

// helloTimeout is how long a client may take for its first frame.
const helloTimeout = 5 * time.Second

// callTimeout limits one call of the application.
const callTimeout = 15 * time.Second

// Server serves the sessions of one process.
type Server struct {
	options  Options
	backend  Backend
	bus      bus.Bus
	hub      *hub.Hub
	presence *presence
	checks   pendingChecks
	frames   *accounts.Limiter // of each user
	silent   socketLimiter
	epoch    string
}

// New starts a hub. The caller runs Run, and at the end Drain and Close.
func New(backend Backend, b bus.Bus, options Options) *Server {
	orDefault(&options.Heartbeat, 25*time.Second)
	orDefault(&options.MaxMessage, 64<<10)
	orDefault(&options.Rate, 40)
	orDefault(&options.Burst, 120)
	orDefault(&options.MaxSilent, 2000)
	orDefault(&options.MaxSilentFrom, 200)
	orDefault(&options.MaxGroups, 1000)
	orDefault(&options.MaxEventGroups, 100)
	orDefault(&options.WriteTimeout, 10*time.Second)
	orDefault(&options.Lease, 30*time.Second)
	orDefault(&options.Check, time.Minute)
	if options.Address == nil {
		options.Address = connectionAddress
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: options, backend: backend, bus: b, checks: newPendingChecks(), epoch: rand.Text()}
	s.frames = accounts.NewLimiter(int(options.Burst), time.Duration(options.Burst/options.Rate*float64(time.Second)))
	s.silent = socketLimiter{most: options.MaxSilent, mostFrom: options.MaxSilentFrom, from: make(map[string]int)}
	s.presence = newPresence(s.epoch, options.Lease, s.pushPresence)
	options.Hub.Presence = s.presence.setLocal
	options.Hub.Silence = 3 * options.Heartbeat
	options.Hub.Log = options.Log
	s.hub = hub.New(options.Hub)
	return s
}

func orDefault[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}

// Run delivers the events of the bus, tells other servers which users are online, and
// checks what lost events may have changed, until ctx ends. It returns the context's error.
func (s *Server) Run(ctx context.Context) error {
	renewals, checked := make(chan error, 1), make(chan struct{})
	go func() { renewals <- s.presence.run(ctx, s.bus) }()
	go func() {
		defer close(checked)
		s.recheck(ctx)
	}()
	err := s.bus.Subscribe(ctx, s.deliver)
	<-checked
	return errors.Join(err, <-renewals)
}

// deliver hands an event of the bus to the hub.
func (s *Server) deliver(e bus.Event) {
	if e.Type == bus.Missed || e.Type == bus.Revoked || len(e.Removed) > 0 {
		s.checks.changes.Add(1) // before the hub ends what it knows
	}
	switch e.Type {
	case bus.Missed:
		s.checks.allSessions()
		s.hub.Resync()
	case bus.Revoked:
		for _, user := range e.Users {
			s.hub.Revoke(user, e.Session)
		}
	case bus.Presence:
		s.presence.merge(e.Payload)
	default:
		s.hub.Publish(hub.Event{
			Topic: e.Topic, Frame: hub.NewFrame(e.Payload), Change: e.Change, Volatile: e.ID == "",
			Users: e.Users, Removed: e.Removed,
		})
		if len(e.Removed) > 0 {
			s.checks.add(func(r *pendingChecks) { r.removed(e.Removed) })
		}
	}
}

// Drain closes all sessions with 1012 and waits until they have ended, or for ctx.
// Each client receives its own random delay, at most spread, before it reconnects.
func (s *Server) Drain(ctx context.Context, spread time.Duration) error {
	return s.hub.Drain(ctx, spread)
}

// Close ends the hub, after Drain.
func (s *Server) Close() { s.hub.Close() }

// Stats are the hub's numbers.
func (s *Server) Stats() hub.Stats { return s.hub.Stats() }

// Read tells the members of a group that a user has read its messages up to seq.
// The event is volatile.
func Read(ctx context.Context, p bus.Publisher, group string, user, seq int64) error {
	return publish(ctx, p, group, map[string]any{"push": "read", "group": group, "user": user, "seq": seq})
}

// Typing tells the members of a group that a user is typing.
func typing(ctx context.Context, p bus.Publisher, group string, user int64) error {
	return publish(ctx, p, group, map[string]any{"push": "typing", "group": group, "user": user})
}

func publish(ctx context.Context, p bus.Publisher, group string, push map[string]any) error {
	payload, err := json.Marshal(push)
	if err != nil {
		return fmt.Errorf("encode push: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, volatileTimeout)
	defer cancel()
	return p.Publish(ctx, bus.Event{Topic: bus.GroupTopic(group), Payload: payload})
}

// volatileTimeout limits how long a client waits for an event that may be lost.
const volatileTimeout = time.Second
