package hub

import (
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

const (
	// maxBatch is how many mailbox entries are handled before sessions are
	// written. Frames that are queued together need one write.
	maxBatch = 256
	// maxWrite limits the bytes of one write.
	maxWrite = 64 << 10
	// sweepInterval is how often sessions are checked for silence, and users for
	// the end of their debounce.
	sweepInterval = time.Second
	// renewWithin is how long a client may take to subscribe again after a resync.
	renewWithin = 30 * time.Second
	// writeTimeout is how long a transport may take for one write.
	writeTimeout = 15 * time.Second
)

// state is all state of a shard. Only the shard's goroutine uses it.
type state struct {
	*shard

	sessions   map[*Session]struct{}
	topics     map[string]*topic
	users      map[int64]*presence
	dirty      []*Session
	scratch    []*Frame
	event      uint64    // number of the present event
	current    *Session  // whose frame is being handled; closed after a panic
	sent       int64     // frames since the counters were updated
	written    int64     // writes
	staleUntil time.Time // when stale subscriptions end; zero: there are none
}

type topic struct {
	name          string
	subscriptions []*subscription
}

// presence is the sessions of a user. Without sessions it is kept until expires.
type presence struct {
	sessions []*Session
	expires  time.Time
}

// run restarts the shard after each panic, until the hub is closed.
func (s *shard) run() {
	st := s.newState()
	for !st.serve() {
		st = st.rebuild()
	}
}

func (s *shard) newState() *state {
	return &state{
		shard: s, sessions: make(map[*Session]struct{}), topics: make(map[string]*topic), users: make(map[int64]*presence),
	}
}

// serve handles the mailbox. It returns true when the hub is closed, and false
// after a panic.
func (st *state) serve() (closed bool) {
	defer func() {
		if reason := recover(); reason != nil {
			st.hub.options.Log.Error("a shard panicked and is restarted",
				slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
			st.restarts.Add(1)
		}
	}()
	ticks := time.NewTicker(sweepInterval)
	defer ticks.Stop()
	for {
		select {
		case f := <-st.mailbox:
			f(st)
			st.batch()
			st.flush()
		case <-ticks.C:
			st.sweep(time.Now())
			st.flush()
		case <-st.hub.stop:
			return true
		}
		if st.missed.Swap(false) {
			// A subscription in the mailbox was posted before the loss. It must become stale too.
			for left := len(st.mailbox); left > 0; left -= maxBatch {
				st.batch()
				st.flush()
			}
			st.resyncAll()
			st.flush()
		}
	}
}

// batch handles what waits in the mailbox already.
func (st *state) batch() {
	for range maxBatch {
		select {
		case f := <-st.mailbox:
			f(st)
		default:
			return
		}
	}
}

// rebuild returns a new state with the sessions of a state that panicked and
// their subscriptions. The session that was being handled is closed; all others
// resync, because the event that was being delivered is lost.
func (st *state) rebuild() *state {
	next := st.newState()
	next.event = st.event
	if s := st.current; s != nil {
		s.attached = false
		delete(st.sessions, s)
		go s.transport.Close(CodeInternal, "internal error", nil)
	}
	now := time.Now()
	for user := range st.users {
		next.users[user] = &presence{expires: now.Add(st.hub.options.Debounce)}
	}
	for s := range st.sessions {
		next.sessions[s] = struct{}{}
		next.userOf(s.user).add(s)
		topics := s.topics
		s.topics, s.dirty = nil, false
		for _, old := range topics {
			sub := next.join(s, old.topic.name)
			t, index := sub.topic, sub.index
			*sub = *old
			sub.topic, sub.index = t, index
		}
		next.mark(s)
	}
	next.shard.sessions.Store(int64(len(next.sessions)))
	next.missed.Store(true)
	next.tryPost(true, func(*state) {})
	return next
}

func (st *state) userOf(user int64) *presence {
	p := st.users[user]
	if p == nil {
		p = &presence{}
		st.users[user] = p
	}
	return p
}

func (p *presence) add(s *Session) {
	p.sessions, p.expires = append(p.sessions, s), time.Time{}
}

func (st *state) attach(s *Session, first *Frame) {
	s.attached = true
	st.sessions[s] = struct{}{}
	st.shard.sessions.Add(1)
	_, known := st.users[s.user]
	st.userOf(s.user).add(s)
	if !known {
		st.hub.options.Presence(s.user, true)
	}
	st.send(s, first)
	if st.draining { // Attach came before Drain, and its command after
		st.close(s, CodeDrain, "drain", time.Second)
	}
}

// detach forgets a session.
func (st *state) detach(s *Session) {
	if !s.attached {
		return
	}
	s.attached = false
	delete(st.sessions, s)
	st.shard.sessions.Add(-1)
	for len(s.topics) > 0 {
		st.leave(s, s.topics[len(s.topics)-1])
	}
	s.durable.clear()
	s.volatile.clear()
	p := st.users[s.user]
	p.sessions = slices.DeleteFunc(p.sessions, func(other *Session) bool { return other == s })
	if len(p.sessions) == 0 {
		p.expires = time.Now().Add(st.hub.options.Debounce)
	}
}

// close detaches a session and closes its connection, and tells the client when to reconnect.
// A slow session does not receive what is queued.
func (st *state) close(s *Session, code int, reason string, reconnectAfter time.Duration) {
	if !s.attached {
		return
	}
	var last []*Frame
	if code != CodeSlow {
		last, _ = s.durable.take(nil, maxWrite) // the client resumes after them
	}
	last = append(last, FrameOf(bye{"bye", reason, reconnectAfter.Milliseconds()}))
	st.detach(s)
	st.current = s
	s.transport.Close(code, reason, last)
	st.current = nil
}

func (st *state) revoke(user int64, id string) {
	p := st.users[user]
	if p == nil {
		return
	}
	for _, s := range slices.Clone(p.sessions) {
		if s.id == id {
			st.close(s, CodeRevoked, "revoked", 0)
		}
	}
}

// drain closes all sessions.
func (st *state) drain(spread time.Duration) {
	st.draining = true
	for s := range st.sessions {
		st.close(s, CodeDrain, "drain", time.Duration(rand.Int64N(int64(spread)+1)))
	}
}

// resyncAll tells all sessions that events may have been lost. A lost event may
// have removed a member, so subscriptions that are not renewed end.
func (st *state) resyncAll() {
	f := FrameOf(resync{"resync", resyncWithin.Milliseconds()})
	for s := range st.sessions {
		for _, sub := range s.topics {
			sub.stale = true
		}
		st.send(s, f)
	}
	if st.staleUntil.IsZero() {
		st.staleUntil = time.Now().Add(renewWithin)
	}
}

// endStale ends subscriptions that were not renewed, and tells the sessions.
func (st *state) endStale() {
	st.staleUntil = time.Time{}
	for s := range st.sessions {
		ended := 0
		for _, sub := range slices.Clone(s.topics) {
			if sub.stale {
				st.leave(s, sub)
				ended++
			}
		}
		if ended > 0 {
			st.send(s, FrameOf(resync{Push: "resync"}))
		}
	}
}

// sweep closes sessions that are silent or do not take a write, and reports users
// without sessions.
func (st *state) sweep(now time.Time) {
	silent := now.Add(-st.hub.options.Silence).Unix()
	for s := range st.sessions {
		switch {
		case !s.busySince.IsZero() && now.Sub(s.busySince) > writeTimeout:
			st.closeSlow(s)
		case s.heard.Load() < silent:
			st.close(s, CodeSilent, "silent", 0)
		}
	}
	if !st.staleUntil.IsZero() && now.After(st.staleUntil) {
		st.endStale()
	}
	for user, p := range st.users {
		if len(p.sessions) == 0 && !now.Before(p.expires) {
			delete(st.users, user)
			st.hub.options.Presence(user, false)
		}
	}
}

func (st *state) closeSlow(s *Session) {
	st.slow.Add(1)
	st.close(s, CodeSlow, "slow", slowReconnect)
}
