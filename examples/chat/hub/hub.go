// Package hub delivers events to the connected sessions of one server.
//
// Users are hashed to shards. One goroutine per shard owns all state of its users'
// sessions: subscriptions, queues and presence. It never waits for a session: a
// [Transport] takes a write and reports its end later. Mailboxes and queues are
// bounded.
//
// Delivery is at most once. The database is the source of truth; a client detects
// a lost event by a gap in the change numbers of a group and reads it from there.
// If a lost event may leave no visible gap, the hub sends a push "resync". This happens
// after an event found a full mailbox, a shard panicked, or the bus lost events.
package hub

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Close codes. A client reconnects after 1012, 3000 to 3499 and 4008, and not
// after 3500 to 3999.
const (
	CodeDrain     = 1012 // the server restarts
	CodeSilent    = 3001 // no frame of the client within two heartbeats
	CodeInternal  = 3002 // an error of the server
	CodeTooMany   = 3004 // the user has too many sessions
	CodeBadToken  = 3501 // the token or ticket is not valid
	CodeRevoked   = 3502 // the session was revoked
	CodeSlow      = 4008 // the client does not read what the server sends
	resyncWithin  = 5 * time.Second
	slowReconnect = time.Second
)

// Options configure a hub. The zero value is usable.
type Options struct {
	// Shards is the number of goroutines. Default: GOMAXPROCS.
	Shards int
	// Mailbox is the number of events and commands that may wait for a shard.
	// Default: 4096. Above it events are dropped and sessions receive a push "resync";
	// commands of sessions wait.
	Mailbox int
	// MaxQueue and MaxQueueBytes limit the frames that wait for one session.
	// Defaults: 256 and 1 MiB. Above it the session is closed with CodeSlow.
	MaxQueue, MaxQueueBytes int
	// MaxVolatile limits the frames among them that may be lost, such as typing.
	// Default: 16. Above it they are dropped and counted.
	MaxVolatile int
	// MaxSessions limits the attached sessions of one user. Default: 100.
	MaxSessions int
	// Silence is how long a session may be without a frame of its client. Default:
	// 75 seconds. Transports without client frames are exempt.
	Silence time.Duration
	// Presence is called when the first session of a user has attached, and when
	// the last one has been detached for Debounce (default: 5 seconds). It is called
	// by the shard and must not block.
	Presence func(user int64, online bool)
	Debounce time.Duration
	// Log receives panics. Default: none.
	Log *slog.Logger
}

func (o *Options) setDefaults() {
	o.Shards = positive(o.Shards, runtime.GOMAXPROCS(0))
	o.Mailbox = positive(o.Mailbox, 4096)
	o.MaxQueue = positive(o.MaxQueue, 256)
	o.MaxQueueBytes = positive(o.MaxQueueBytes, 1<<20)
	o.MaxVolatile = positive(o.MaxVolatile, 16)
	o.MaxSessions = positive(o.MaxSessions, 100)
	o.Silence = positive(o.Silence, 75*time.Second)
	o.Debounce = positive(o.Debounce, 5*time.Second)
	if o.Presence == nil {
		o.Presence = func(int64, bool) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func positive[T int | time.Duration](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

// Event is delivered to all sessions that are subscribed to its topic.
type Event struct {
	Topic string
	Frame *Frame
	// Change is the number of the change within the topic. A session receives a
	// number once: repeated and older ones are dropped. Zero: no number.
	Change int64
	// Volatile frames are dropped first when a session is slow.
	Volatile bool
	// Users are users whose sessions receive the event without a subscription.
	Users []int64
	// Removed are users whose sessions lose their subscription to the topic, after
	// they have received the event, unless they have received a later change.
	Removed []int64
}

// Hub delivers events to sessions. Its methods may be called by any goroutine.
type Hub struct {
	options Options
	shards  []*shard
	seed    maphash.Seed
	stop    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	draining bool
	open     sync.WaitGroup // sessions that were attached and are not detached
	ofUser   map[int64]int  // their numbers
}

// New starts the shards. The caller ends them with Close.
func New(options Options) *Hub {
	options.setDefaults()
	h := &Hub{options: options, seed: maphash.MakeSeed(), stop: make(chan struct{}), ofUser: make(map[int64]int)}
	for range options.Shards {
		s := &shard{hub: h, mailbox: make(chan func(*state), options.Mailbox)}
		h.shards = append(h.shards, s)
		h.running.Go(s.run)
	}
	return h
}

// Publish delivers an event to the sessions of this server. It never blocks: a
// shard with a full mailbox drops the event, and tells its sessions to resync
// unless the event is volatile.
func (h *Hub) Publish(e Event) {
	for _, s := range h.shards {
		s.tryPost(e.Volatile, func(st *state) { st.deliver(e) })
	}
}

// Resync tells all sessions that events may have been lost.
func (h *Hub) Resync() {
	for _, s := range h.shards {
		s.missed.Store(true)
		s.tryPost(true, func(*state) {}) // wakes the shard
	}
}

// Revoke closes the sessions of a user that have the given ID.
func (h *Hub) Revoke(user int64, id string) {
	s := h.shardOf(user)
	s.post(func(st *state) { st.revoke(user, id) })
}

// Sessions returns the IDs of the attached sessions, with their users.
func (h *Hub) Sessions() map[string]int64 {
	parts := make(chan map[string]int64, len(h.shards))
	for _, s := range h.shards {
		s.post(func(st *state) {
			part := make(map[string]int64, len(st.sessions))
			for session := range st.sessions {
				part[session.id] = session.user
			}
			parts <- part
		})
	}
	all := make(map[string]int64)
	for range h.shards {
		select {
		case part := <-parts:
			maps.Copy(all, part)
		case <-h.stop:
		}
	}
	return all
}

// Unwatch ends the watched topics of a user's sessions that may does not allow.
func (h *Hub) Unwatch(user int64, may func(topic string) bool) {
	h.shardOf(user).post(func(st *state) {
		for _, s := range st.sessionsOf(user) {
			st.leaveWatched(s.topics, func(sub *subscription) bool { return may(sub.topic.name) })
		}
	})
}

// UnwatchTopic ends the watching of a topic by users that may does not allow.
func (h *Hub) UnwatchTopic(topic string, may func(user int64) bool) {
	for _, s := range h.shards {
		s.post(func(st *state) {
			if t := st.topics[topic]; t != nil {
				st.leaveWatched(t.subscriptions, func(sub *subscription) bool { return may(sub.session.user) })
			}
		})
	}
}

// Errors of Attach.
var (
	// ErrDraining says that the hub takes no more sessions.
	ErrDraining = errors.New("hub is draining")
	// ErrTooMany says that the user has Options.MaxSessions sessions.
	ErrTooMany = errors.New("the user has too many sessions")
)

// NewSession returns a session of a user that is not attached yet. The ID is for
// Revoke.
func (h *Hub) NewSession(user int64, id string, t Transport) *Session {
	s := &Session{user: user, id: id, shard: h.shardOf(user), transport: t}
	s.Heard()
	return s
}

// Attach makes a session receive events. The first frame is sent before all others.
// Unless it fails, the caller must call [Session.Detach] once.
func (h *Hub) Attach(s *Session, first *Frame) error {
	if err := h.admit(s.user); err != nil {
		return err
	}
	s.shard.post(func(st *state) { st.attach(s, first) })
	return nil
}

func (h *Hub) admit(user int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.draining:
		return ErrDraining
	case h.ofUser[user] >= h.options.MaxSessions:
		return ErrTooMany
	}
	h.ofUser[user]++
	h.open.Add(1)
	return nil
}

// forget is the counterpart of admit.
func (h *Hub) forget(user int64) {
	h.mu.Lock()
	if h.ofUser[user]--; h.ofUser[user] == 0 {
		delete(h.ofUser, user)
	}
	h.mu.Unlock()
	h.open.Done()
}

func (h *Hub) shardOf(user int64) *shard {
	return h.shards[maphash.Comparable(h.seed, user)%uint64(len(h.shards))]
}

// Drain refuses new sessions and closes all others with CodeDrain, each with
// its own random delay, at most spread, after which the client shall reconnect. It
// returns when all sessions are detached, or with the context's error.
func (h *Hub) Drain(ctx context.Context, spread time.Duration) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	for _, s := range h.shards {
		s.post(func(st *state) { st.drain(spread) })
	}
	done := make(chan struct{})
	go func() {
		h.open.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain sessions: %w", ctx.Err())
	}
}

// Close ends the shards. Sessions that are still attached receive nothing more.
func (h *Hub) Close() {
	close(h.stop)
	h.running.Wait()
}

// Stats are numbers since the start, except Sessions, which is the present number.
type Stats struct {
	Sessions  int64
	Delivered int64 // frames that were given to a transport
	Writes    int64 // calls of a transport, each with the frames that waited
	Dropped   int64 // volatile frames
	Slow      int64 // sessions that were closed with CodeSlow
	Missed    int64 // events that found a full mailbox, counted per shard
	Restarts  int64 // panics of a shard
}

// Stats returns the sum over all shards.
func (h *Hub) Stats() Stats {
	var sum Stats
	for _, s := range h.shards {
		sum.Sessions += s.sessions.Load()
		sum.Delivered += s.delivered.Load()
		sum.Writes += s.writes.Load()
		sum.Dropped += s.dropped.Load()
		sum.Slow += s.slow.Load()
		sum.Missed += s.lost.Load()
		sum.Restarts += s.restarts.Load()
	}
	return sum
}

// shard is the mailbox and the counters of one goroutine. Its state is owned by
// the goroutine and replaced after a panic.
type shard struct {
	hub     *Hub
	mailbox chan func(*state)
	missed  atomic.Bool // an event was dropped: sessions must resync

	draining bool // owned by the goroutine

	sessions, delivered, writes, dropped, slow, lost, restarts atomic.Int64
}

// post waits for room in the mailbox. The shard never waits, so there will be
// room, or the hub is closed.
func (s *shard) post(f func(*state)) {
	select {
	case s.mailbox <- f:
	case <-s.hub.stop:
	}
}

func (s *shard) tryPost(volatile bool, f func(*state)) {
	select {
	case s.mailbox <- f:
	default:
		s.lost.Add(1)
		if !volatile {
			s.missed.Store(true)
		}
	}
}
