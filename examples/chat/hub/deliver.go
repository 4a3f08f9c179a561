package hub

import (
	"slices"
	"time"
)

// join subscribes a session to a topic, or returns its subscription.
func (st *state) join(s *Session, name string) *subscription {
	if sub := s.subscription(name); sub != nil {
		return sub
	}
	t := st.topics[name]
	if t == nil {
		t = &topic{name: name}
		st.topics[name] = t
	}
	sub := &subscription{topic: t, session: s, index: len(t.subscriptions)}
	t.subscriptions = append(t.subscriptions, sub)
	s.topics = append(s.topics, sub)
	return sub
}

func (st *state) leave(s *Session, sub *subscription) {
	t := sub.topic
	end := len(t.subscriptions) - 1
	moved := t.subscriptions[end]
	t.subscriptions[sub.index], moved.index = moved, sub.index
	t.subscriptions[end] = nil
	t.subscriptions = t.subscriptions[:end]
	if end == 0 {
		delete(st.topics, t.name)
	}
	s.topics = slices.DeleteFunc(s.topics, func(other *subscription) bool { return other == sub })
}

func (st *state) subscribe(s *Session, topic string) {
	if s.attached {
		sub := st.join(s, topic)
		// A loss from here on makes it stale again: the application may authorize the
		// caller before it.
		sub.numbered, sub.catchingUp, sub.stale = true, true, false
	}
}

func (st *state) watch(s *Session, topic string) {
	if s.attached {
		st.join(s, topic).stale = false
	}
}

// leaveWatched ends those subscriptions made by Watch that keep does not keep.
func (st *state) leaveWatched(all []*subscription, keep func(*subscription) bool) {
	for _, sub := range slices.Clone(all) {
		if !sub.numbered && !keep(sub) {
			st.leave(sub.session, sub)
		}
	}
}

func (st *state) unsubscribe(s *Session, topic string) {
	if sub := s.subscription(topic); sub != nil {
		st.leave(s, sub)
	}
}

func (st *state) recovered(s *Session, topic string, change int64, answer *Frame) {
	st.send(s, answer)
	sub := s.subscription(topic)
	if sub == nil { // removed from the group meanwhile, and perhaps added again
		st.send(s, FrameOf(resync{Push: "resync"}))
		return
	}
	held := sub.held
	sub.catchingUp, sub.held, sub.heldBytes, sub.last = false, nil, 0, max(sub.last, change)
	for _, h := range held {
		st.offer(sub, h.frame, h.change, false)
	}
}

// deliver queues an event for all sessions that it is meant for. Each of them
// receives it once.
func (st *state) deliver(e Event) {
	st.event++
	if t := st.topics[e.Topic]; t != nil {
		// From the end: a session that is closed is replaced by one from there.
		for _, sub := range slices.Backward(t.subscriptions) {
			sub.session.seen = st.event
			st.offer(sub, e.Frame, e.Change, e.Volatile)
		}
	}
	for _, user := range e.Users {
		for _, s := range st.sessionsOf(user) {
			if s.seen != st.event {
				s.seen = st.event
				st.enqueue(s, e.Frame, e.Volatile)
			}
		}
	}
	for _, user := range e.Removed {
		for _, s := range st.sessionsOf(user) {
			// A repeated event does not remove a member that was added again.
			if sub := s.subscription(e.Topic); sub != nil && sub.last <= e.Change {
				st.leave(s, sub)
			}
		}
	}
}

// sessionsOf returns a copy: a session that overflows is removed from the original.
func (st *state) sessionsOf(user int64) []*Session {
	if p := st.users[user]; p != nil {
		return slices.Clone(p.sessions)
	}
	return nil
}

// offer queues a frame unless the client has received its change. During the
// catch-up frames with a change are held, and others are sent at once.
func (st *state) offer(sub *subscription, f *Frame, change int64, volatile bool) {
	if change > 0 {
		if change <= sub.last {
			return
		}
		if sub.catchingUp {
			sub.heldBytes += len(f.data)
			if len(sub.held) >= st.hub.options.MaxQueue || sub.heldBytes > st.hub.options.MaxQueueBytes {
				st.closeSlow(sub.session)
				return
			}
			sub.held = append(sub.held, pendingFrame{f, change})
			return
		}
		sub.last = change
	}
	st.enqueue(sub.session, f, volatile)
}

func (st *state) send(s *Session, f *Frame) { st.enqueue(s, f, false) }

// enqueue queues a frame for a session. Volatile frames are dropped first; a
// session with too many others is closed.
func (st *state) enqueue(s *Session, f *Frame, volatile bool) {
	if !s.attached {
		return
	}
	if volatile {
		if len(s.volatile.frames) >= st.hub.options.MaxVolatile || st.full(s, f) {
			st.dropped.Add(1)
			return
		}
		s.volatile.push(f)
		st.mark(s)
		return
	}
	if st.full(s, f) {
		st.dropped.Add(int64(s.volatile.clear()))
		if st.full(s, f) {
			st.closeSlow(s)
			return
		}
	}
	s.durable.push(f)
	st.mark(s)
}

func (st *state) full(s *Session, f *Frame) bool {
	o := &st.hub.options
	return len(s.durable.frames)+len(s.volatile.frames) >= o.MaxQueue || s.durable.bytes+s.volatile.bytes+len(f.data) > o.MaxQueueBytes
}

// mark makes flush write the session's frames.
func (st *state) mark(s *Session) {
	if !s.dirty {
		s.dirty = true
		st.dirty = append(st.dirty, s)
	}
}

func (st *state) ready(s *Session) {
	s.busySince = time.Time{}
	if s.attached {
		st.mark(s)
	}
}

// flush writes the queues of marked sessions whose transport is ready.
func (st *state) flush() {
	for len(st.dirty) > 0 {
		end := len(st.dirty) - 1
		s := st.dirty[end]
		st.dirty = st.dirty[:end]
		s.dirty = false
		if s.attached && s.busySince.IsZero() {
			st.write(s)
		}
	}
	if st.sent > 0 {
		st.delivered.Add(st.sent)
		st.writes.Add(st.written)
		st.sent, st.written = 0, 0
	}
}

func (st *state) write(s *Session) {
	frames, room := s.durable.take(st.scratch[:0], maxWrite)
	if room > 0 {
		frames, _ = s.volatile.take(frames, room)
	}
	st.scratch = frames
	if len(frames) == 0 {
		return
	}
	st.sent += int64(len(frames))
	st.written++
	st.current = s
	done := s.transport.Write(frames)
	st.current = nil
	clear(frames)
	if !done {
		s.busySince = time.Now()
		return
	}
	if len(s.durable.frames) > 0 || len(s.volatile.frames) > 0 {
		st.mark(s)
	}
}
