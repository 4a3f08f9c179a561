package sim

import "github.com/semelgo/semel/store"

// session is a transaction at the database. It outlives the client that opened
// it when that one is dead, or has lost the connection.
type session struct {
	actor   int
	row     int
	hold    bool          // has the only right to the record
	whole   bool          // goes to the server as one request
	wants   bool          // cannot begin while another transaction has the right
	locked  bool          // its last statement is carried out, the decision still to come
	orphan  bool          // its client is dead or has lost the connection
	commits bool          // the commit was sent
	change  *store.Change // nil: nothing but writes
	effects []effect
	writes  []store.Change // of other records, before its last statement; or of all
}

// lateRequest is a request that may arrive after its sender has stopped
// waiting.
type lateRequest struct {
	actor  int
	change *store.Change // to the store
	take   *store.Dequeue
	effect grant // to the receiver
	value  string
}

func (w *world) open(a *actor, row int, hold bool) *session {
	s := &session{actor: a.index, row: row, hold: hold}
	w.sessions = append(w.sessions, s)
	return s
}

func (w *world) close(s *session) {
	for i, other := range w.sessions {
		if other == s {
			w.sessions = append(w.sessions[:i], w.sessions[i+1:]...)
			return
		}
	}
}

// orphan leaves the session of a dead client. The server may still receive the
// commit, or notice that the client is gone.
func (w *world) orphan(s *session) { s.orphan = true }

// holder returns a transaction other than s with the right to the record, or
// nil.
func (w *world) holder(row int, s *session) *session {
	for _, other := range w.sessions {
		if other != s && other.row == row && (other.hold || other.locked) {
			return other
		}
	}
	return nil
}

// writer returns a transaction other than s that excludes writers of the
// record, or nil. In some stores the right to a record excludes only
// transactions that want the same right.
func (w *world) writer(row int, s *session) *session {
	if other := w.holder(row, s); other != nil && (other.locked || !w.stage.plan.Soft) {
		return other
	}
	for _, other := range w.sessions {
		if other != s && other.wrote(row, w) {
			return other
		}
	}
	return nil
}

// commit carries out the last statement of s and commits, or rolls back.
func (w *world) commit(s *session) bool {
	w.close(s)
	if s.change == nil {
		w.writeAll(s)
		return true
	}
	r := w.row(s.change.To.ID)
	if !r.mayChange(s.change) {
		return false
	}
	for _, e := range s.effects {
		e.epoch = r.epoch
		w.happen(e)
	}
	w.writeAll(s)
	w.write(s.actor, r, s.change)
	return true
}

// writeAll applies what s wrote to other records.
func (w *world) writeAll(s *session) {
	for i := range s.writes {
		c := &s.writes[i]
		w.write(w.requester(w.actors[s.actor], c), w.row(c.To.ID), c)
	}
}

func (w *world) lateRequest(p lateRequest) { w.lateRequests = append(w.lateRequests, p) }

// deliverLate delivers a late request. Its answer is lost.
func (w *world) deliverLate(i int) {
	p := w.lateRequests[i]
	w.lateRequests = append(w.lateRequests[:i], w.lateRequests[i+1:]...)
	if p.change != nil {
		w.swap(p.actor, p.change)
		return
	}
	if p.take != nil {
		w.dequeue(p.actor, *p.take)
		return
	}
	_, _ = w.receive(p.effect, p.value)
}

// sessionsDigest covers what actors that are done have left behind; their order
// does not matter.
func (w *world) sessionsDigest(d digest) digest {
	var sum uint64
	for _, s := range w.sessions {
		x := digestSeed.add(uint64(s.actor)).add(uint64(s.row)).flag(s.hold).flag(s.locked).flag(s.orphan).flag(s.commits).flag(s.wants)
		if s.change != nil {
			x = w.changeDigest(x, s.change).add(uint64(len(s.effects)))
		}
		for i := range s.writes {
			x = w.changeDigest(x.add(uint64(w.indexOf(s.writes[i].To.ID))), &s.writes[i])
		}
		sum += uint64(x)
	}
	for _, p := range w.lateRequests {
		x := digestSeed.add(uint64(p.actor)).text(p.value).add(w.ownerNumber(p.effect.owner))
		if p.change != nil {
			x = w.changeDigest(x, p.change)
		}
		if p.take != nil {
			x = x.add(w.ownerNumber(p.take.Owner)).add(uint64(p.take.Limit))
		}
		sum += uint64(x)
	}
	return d.add(sum)
}

func (w *world) changeDigest(d digest, c *store.Change) digest {
	d = d.add(uint64(c.If.State)).add(uint64(c.If.Attempt)).add(w.ownerNumber(c.If.Owner)).flag(c.IfDue)
	d = d.add(uint64(c.To.State)).add(uint64(c.To.Attempt)).add(w.ownerNumber(c.To.Owner)).flag(c.To.Due <= 0)
	return d.bytes(c.To.Outcome)
}
