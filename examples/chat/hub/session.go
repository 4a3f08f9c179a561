package hub

import (
	"sync/atomic"
	"time"
)

// Transport writes frames to one client. Its methods are called by the goroutine
// of a shard and must not block.
type Transport interface {
	// Write takes frames, which it may keep but not change; it must not keep the
	// slice. It returns true if it has written them or failed for good. Otherwise it
	// calls [Session.Written] when it is ready for more, from another goroutine.
	Write(frames []*Frame) bool
	// Close sends last frames, if there are any, and closes the connection.
	Close(code int, reason string, last []*Frame)
}

// Session is one connection of a user. Its methods may be called by any goroutine
// except one that runs in a method of its transport.
type Session struct {
	user      int64
	id        string
	shard     *shard
	transport Transport
	heard     atomic.Int64 // when the client has sent a frame, in Unix seconds

	// The shard's goroutine owns the rest.
	topics    []*subscription
	durable   queue
	volatile  queue
	busySince time.Time // of the transport; zero: it is ready
	seen      uint64    // number of the last event that was offered
	dirty     bool      // has frames to write
	attached  bool
}

// subscription is the place of a session in a topic.
type subscription struct {
	topic   *topic
	session *Session
	index   int   // in topic.subscriptions
	last    int64 // last change that the client has received or is reading
	// numbered: made by Subscribe, after the application has authorized it.
	numbered bool
	stale    bool // to be renewed, because an event may have been lost
	// catchingUp: frames are held until the client has received its answer.
	catchingUp bool
	held       []pendingFrame
	heldBytes  int
}

type pendingFrame struct {
	frame  *Frame
	change int64
}

// queue holds frames that wait for the transport.
type queue struct {
	frames []*Frame
	bytes  int
}

func (q *queue) push(f *Frame) {
	q.frames = append(q.frames, f)
	q.bytes += len(f.data)
}

// take moves frames of at most limit bytes, but at least one frame, to out.
func (q *queue) take(out []*Frame, limit int) ([]*Frame, int) {
	n := 0
	for n < len(q.frames) && (limit > 0 || len(out) == 0) {
		f := q.frames[n]
		out = append(out, f)
		limit -= len(f.data)
		q.bytes -= len(f.data)
		n++
	}
	rest := copy(q.frames, q.frames[n:])
	clear(q.frames[rest:])
	q.frames = q.frames[:rest]
	if rest == 0 && cap(q.frames) > keptFrames {
		q.frames = nil
	}
	return out, limit
}

func (q *queue) clear() int {
	n := len(q.frames)
	*q = queue{}
	return n
}

// keptFrames is the capacity that an empty queue keeps.
const keptFrames = 4

// Send queues a frame for this session alone.
func (s *Session) Send(f *Frame) {
	s.shard.post(func(st *state) { st.send(s, f) })
}

// Subscribe subscribes to a topic and holds its events until Recovered. The caller
// reads what the client has missed after Subscribe: an event that came earlier is
// committed already, so the caller finds it.
func (s *Session) Subscribe(topic string) {
	s.shard.post(func(st *state) { st.subscribe(s, topic) })
}

// Recovered sends the answer of a subscription, and then the events with later
// changes that were held.
func (s *Session) Recovered(topic string, change int64, answer *Frame) {
	s.shard.post(func(st *state) { st.recovered(s, topic, change, answer) })
}

// Unsubscribe ends a subscription.
func (s *Session) Unsubscribe(topic string) {
	s.shard.post(func(st *state) { st.unsubscribe(s, topic) })
}

// Watch subscribes to a topic whose events have no change numbers.
func (s *Session) Watch(topic string) {
	s.shard.post(func(st *state) { st.watch(s, topic) })
}

// IfSubscribed calls f, which must not block, with whether the session is
// subscribed to the topic. The shard calls it.
func (s *Session) IfSubscribed(topic string, f func(is bool)) {
	s.shard.post(func(*state) {
		sub := s.subscription(topic)
		f(sub != nil && !sub.catchingUp)
	})
}

// Written says that the transport is ready for more frames.
func (s *Session) Written() {
	s.shard.post(func(st *state) { st.ready(s) })
}

// Heard records that the client has sent a frame.
func (s *Session) Heard() { s.heard.Store(time.Now().Unix()) }

// Exempt exempts a session whose client sends no frames from Options.Silence.
func (s *Session) Exempt() { s.heard.Store(exempt) }

const exempt = 1 << 62

// Detach removes the session after its connection has ended.
func (s *Session) Detach() {
	s.shard.post(func(st *state) { st.detach(s) })
	s.shard.hub.forget(s.user)
}

func (s *Session) subscription(topic string) *subscription {
	for _, sub := range s.topics {
		if sub.topic.name == topic {
			return sub
		}
	}
	return nil
}
