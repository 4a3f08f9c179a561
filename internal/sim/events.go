package sim

// eventKind is the kind of an event.
type eventKind uint8

const (
	eventSettle      eventKind = iota // all actors have ended: a retry must settle each key
	eventCall                         // an actor's call gets its result
	eventCommit                       // an orphaned transaction commits
	eventAbort                        // or is rolled back
	eventLateArrival                  // a late request arrives
	eventExpire                       // a lease is over
	eventRenew                        // the leader renews an expired lease
	eventPurge                        // a retention is over
	eventDelay                        // a pending record becomes due
	eventTokenOver                    // the time of a one-time token is over
	eventAge                          // cache entries become older
	eventCancel                       // a caller cancels
	eventCrash                        // an actor dies
)

// event is one thing that the scheduler can let happen.
type event struct {
	kind       eventKind
	index      int // actor, session, post or row
	callResult callResult
}

// possibleEvents lists the events that are possible now. Events without faults
// come first.
func (w *world) possibleEvents(into []event) []event {
	into = into[:0]
	live := false
	var room [callResults]callResult
	for i, a := range w.actors {
		if a.status != statusReady {
			continue
		}
		live = true
		if !w.mayGo(a) || w.hasWaitingDuplicate(a) {
			continue
		}
		for _, h := range a.op.outcomes(&w.budget, w.stage.plan.Soft, room[:0]) {
			into = append(into, event{eventCall, i, h})
		}
	}
	if !live && !w.hasOrphanedLock() {
		into = append(into, event{kind: eventSettle})
	}
	into = w.serverEvents(into)
	if live {
		into = w.faultEvents(into)
	}
	return into
}

// hasWaitingDuplicate reports whether an earlier actor has the same role and has not
// moved either. The order of two such actors makes no difference.
func (w *world) hasWaitingDuplicate(a *actor) bool {
	if a.moved() {
		return false
	}
	for _, b := range w.actors[:a.index] {
		if !b.moved() && b.name[0] == a.name[0] && (b.ask == a.ask || a.op.kind == opPause && b.op.kind == opPause) {
			return true
		}
	}
	return false
}

// mayGo reports whether the actor's call can be executed now. A change of a
// record that another transaction holds gets Busy. A leader repeats some
// changes until they are not Busy, which is modelled as waiting.
func (w *world) mayGo(a *actor) bool {
	switch k := a.op.kind; {
	case k == opCommit:
		return w.writer(a.op.row, a.op.session) == nil
	case k == opSwap && w.mustNotFail(a):
		return w.writer(a.op.row, nil) == nil
	case k == opWait:
		return a.op.settled()
	default:
		return true
	}
}

// mustNotFail reports whether the actor's change ends its own attempt or
// repeats a change in flight.
func (w *world) mustNotFail(a *actor) bool {
	if a.task == taskRecordLate || a.task == taskGiveUp || w.isWritten(&a.op.change) {
		return true
	}
	return w.stage.mode.shape.inline() && a.ask.fp != "" || w.ownerActor(a.op.change.If.Owner) == a.index
}

// hasOrphanedLock reports whether an orphaned transaction holds a record. It
// must end before the keys can be settled.
func (w *world) hasOrphanedLock() bool {
	for _, s := range w.sessions {
		if s.orphan && s.holds() {
			return true
		}
	}
	return false
}

// serverEvents lists the events of orphaned transactions and late requests.
func (w *world) serverEvents(into []event) []event {
	for i, s := range w.sessions {
		if !s.orphan {
			continue
		}
		if s.commits && !w.isBlocked(s) {
			into = append(into, event{kind: eventCommit, index: i})
		}
		if s.holds() || s.whole {
			into = append(into, event{kind: eventAbort, index: i})
		}
	}
	for i, p := range w.lateRequests {
		if p.change == nil || w.writer(w.indexOf(p.change.To.ID), nil) == nil {
			into = append(into, event{kind: eventLateArrival, index: i})
		}
	}
	return into
}

// take executes an event.
func (w *world) take(event event) {
	w.logEvent(event)
	switch event.kind {
	case eventCall:
		w.budget.spend(event.callResult)
		a := w.actors[event.index]
		a.callResult = event.callResult
		a.runNext()
	case eventCommit:
		s := w.sessions[event.index]
		w.markLate(s, w.commit(s))
	case eventAbort:
		s := w.sessions[event.index]
		w.close(s)
		w.markLate(s, false)
	case eventLateArrival:
		w.mark(MarkArrived)
		w.deliverLate(event.index)
	case eventExpire:
		w.budget.Expiries--
		w.rows[event.index].due = true
	case eventRenew:
		w.budget.Renewals--
		w.beat(&w.rows[event.index])
	case eventPurge:
		w.budget.Purges--
		w.endRetention(&w.rows[event.index])
	case eventDelay:
		w.budget.Delays--
		w.mark(MarkDelay)
		w.rows[event.index].due = true
	case eventTokenOver:
		w.budget.Tokens--
		w.rows[event.index].tokenOver = true
	case eventAge:
		w.budget.CacheAges--
		w.age()
	case eventCancel:
		w.budget.Cancels--
		w.mark(MarkCanceled)
		a := w.actors[event.index]
		a.callResult = event.callResult
		a.note(uint64(eventCancel))
		a.proc.canceled = append(a.proc.canceled, a.index)
		a.cancel()
		a.runNext()
	case eventCrash:
		w.budget.Crashes--
		w.mark(MarkCrash)
		w.actors[event.index].proc.crash()
	case eventSettle:
		w.settle()
	}
}

func (w *world) markLate(s *session, committed bool) {
	switch {
	case !s.commits:
	case committed:
		w.mark(MarkLateCommit)
	default:
		w.mark(MarkLateAbort)
	}
}
