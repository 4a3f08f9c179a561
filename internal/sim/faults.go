package sim

import "github.com/semelgo/semel/store"

// faultWays lists what time and bad luck may do next.
func (w *world) faultEvents(into []event) []event {
	for i := range w.stage.scopes {
		r := &w.rows[i]
		if w.budget.Delays > 0 && r.waits() {
			into = append(into, event{kind: eventDelay, index: i})
		}
		if w.budget.Expiries > 0 && r.expires() {
			into = append(into, event{kind: eventExpire, index: i})
		}
		if w.budget.Renewals > 0 && w.mayRenew(r) {
			into = append(into, event{kind: eventRenew, index: i})
		}
		if w.budget.Purges > 0 && w.mayPurge(r) {
			into = append(into, event{kind: eventPurge, index: i})
		}
	}
	if w.budget.CacheAges > 0 {
		into = append(into, event{kind: eventAge})
	}
	if w.budget.Cancels > 0 {
		into = w.cancelEvents(into)
	}
	if w.budget.Crashes == 0 {
		return into
	}
	for i, a := range w.actors {
		if a.status == statusReady && a.moved() && a.isFirstOfProcess() {
			into = append(into, event{kind: eventCrash, index: i})
		}
	}
	return into
}

// speaks tells whether a is the first of those of its process that have come to
// anything: they die together.
func (a *actor) isFirstOfProcess() bool {
	for _, b := range a.proc.members {
		if b.status == statusReady && b.moved() {
			return a == b
		}
	}
	return false
}

// leaveWays lists who may give up: callers whose claim is on its way, by
// themselves or with those of others.
func (w *world) cancelEvents(into []event) []event {
	for i, a := range w.actors {
		if a.cancel == nil || a.isHelper() || a.status != statusReady || !isClaim(&a.op.change) {
			continue
		}
		switch {
		case a.op.kind == opWait && !a.op.settled():
			into = append(into, event{kind: eventCancel, index: i})
		case a.op.kind == opSwap:
			into = append(into, event{eventCancel, i, resultLost}, event{eventCancel, i, resultReplyLost}, event{eventCancel, i, resultLate})
		}
	}
	return into
}

// claims tells whether a change makes somebody a leader.
func isClaim(c *store.Change) bool {
	return c.To.State == store.InProgress && c.If.Owner != c.To.Owner
}

// mayBeat tells whether a lease is over whose leader is alive.
func (w *world) mayRenew(r *row) bool {
	if r.rec.State != store.InProgress || !r.due {
		return false
	}
	leader := w.ownerActor(r.rec.Owner)
	return leader >= 0 && w.actors[leader].status == statusReady
}

// beat is the heartbeat of the leader of a record. The engine sends its own
// from a timer, which never goes off here.
func (w *world) beat(r *row) {
	to := r.rec
	to.Due, to.Input, to.Outcome = lease, nil, nil
	w.swap(w.ownerActor(r.rec.Owner), &store.Change{If: r.rec.Token, To: to})
}

// mayPurge tells whether a record's retention may pass now. It is longer than
// anybody takes to find out about a commit without an answer, and than statements
// that were sent all together can be on their way. What the world
// outside remembers of a key is kept for longer still, so there only records
// of which it knows nothing go.
func (w *world) mayPurge(r *row) bool {
	for _, a := range w.actors {
		if a.unknownCommit && a.status == statusReady {
			return false
		}
	}
	for _, s := range w.sessions {
		if s.whole && s.orphan {
			return false
		}
	}
	return r.hasExpiry && !r.purgeable && (r.rec.State == store.Pending || w.stage.mode.outside == inRecordsDB)
}

// outlive ends the retention of a record. It goes at once, unless there is a
// purger, that will find it.
func (w *world) endRetention(r *row) {
	r.purgeable, r.retentionOver = true, true
	if w.stage.plan.Purgers == 0 {
		w.mark(MarkPurged)
		w.purge(r)
	}
}

// waits tells whether the record has a delay that has not passed.
func (r *row) waits() bool { return r.rec.State == store.Pending && !r.due }

// expires tells whether the record has a lease that is still running.
func (r *row) expires() bool { return r.rec.State == store.InProgress && !r.due }
