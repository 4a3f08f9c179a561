package sim

import "github.com/semelgo/semel/store"

// faultEvents lists the possible events of time, and faults.
func (w *world) faultEvents(into []event) []event {
	for i := range w.stage.scopes {
		r := &w.rows[i]
		if w.budget.Delays > 0 && r.waits() {
			into = append(into, event{kind: eventDelay, index: i})
		}
		if w.budget.Tokens > 0 && !r.tokenOver && r.rec.State != store.Absent {
			into = append(into, event{kind: eventTokenOver, index: i})
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

// isFirstOfProcess reports whether the actor is the first one of its process
// that has moved. The actors of a process die together.
func (a *actor) isFirstOfProcess() bool {
	for _, b := range a.proc.members {
		if b.status == statusReady && b.moved() {
			return a == b
		}
	}
	return false
}

// cancelEvents lists the callers that may cancel: those with a claim in flight,
// alone or in a batch.
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

// isClaim reports whether a change is a claim or a takeover.
func isClaim(c *store.Change) bool {
	return c.To.State == store.InProgress && c.If.Owner != c.To.Owner
}

// mayRenew reports whether the lease is expired and its leader is alive.
func (w *world) mayRenew(r *row) bool {
	if r.rec.State != store.InProgress || !r.due {
		return false
	}
	leader := w.ownerActor(r.rec.Owner)
	return leader >= 0 && w.actors[leader].status == statusReady
}

// beat renews a lease. The engine renews leases from a timer, which never fires
// here.
func (w *world) beat(r *row) {
	to := r.rec
	to.Due, to.Input, to.Outcome = lease, nil, nil
	w.swap(w.ownerActor(r.rec.Owner), &store.Change{If: r.rec.Token, To: to})
}

// mayPurge reports whether the retention of a record may end now. A retention
// is longer than any caller needs to resolve an unknown commit, and longer than
// a batch can be in flight. A receiver remembers keys even longer, so with
// receivers only pending records are purged.
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
	return r.hasExpiry && !r.purgeable && (r.rec.State == store.Pending || w.stage.mode.receiverKind == inRecordsDB)
}

// endRetention ends the retention of a record. The record is removed at once,
// or later by a purger if the plan has one.
func (w *world) endRetention(r *row) {
	r.purgeable, r.retentionOver = true, true
	if w.stage.plan.Purgers == 0 {
		w.mark(MarkPurged)
		w.purge(r)
	}
}

// waits reports whether the record is pending and not due.
func (r *row) waits() bool { return r.rec.State == store.Pending && !r.due }

// expires reports whether the record has a running lease.
func (r *row) expires() bool { return r.rec.State == store.InProgress && !r.due }
