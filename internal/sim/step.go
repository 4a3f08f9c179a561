package sim

// wayKind is what the scheduler may do next.
type wayKind uint8

const (
	waySettle wayKind = iota // everybody is done: see that a retry settles it
	wayGo                    // let an actor through with its call
	wayCommit                // a transaction nobody listens to commits
	wayAbort                 // or is rolled back
	wayArrive                // a late request arrives
	wayExpire                // a lease is over
	wayBeat                  // its leader renews it all the same
	wayPurge                 // a retention is over
	wayDelay                 // what waits is due
	wayAge                   // what is remembered gets older
	wayLeave                 // a caller gives up
	wayCrash                 // an actor dies
)

// way is one thing that may happen next.
type way struct {
	kind wayKind
	who  int // actor, session, post or row
	how  how
}

// waysOn lists what may happen next, first what goes well.
func (w *world) waysOn(into []way) []way {
	into = into[:0]
	live := false
	var room [hows]how
	for i, a := range w.actors {
		if a.status != statusReady {
			continue
		}
		live = true
		if !w.mayGo(a) || w.twinWaits(a) {
			continue
		}
		for _, h := range a.op.outcomes(&w.budget, w.stage.plan.Soft, room[:0]) {
			into = append(into, way{wayGo, i, h})
		}
	}
	if !live && !w.heldByNobody() {
		into = append(into, way{kind: waySettle})
	}
	into = w.serverWays(into)
	if live {
		into = w.faultWays(into)
	}
	return into
}

// twinWaits tells whether an actor before a has the same role and has not moved
// either: which of the two goes first makes no difference.
func (w *world) twinWaits(a *actor) bool {
	if a.moved() {
		return false
	}
	for _, b := range w.actors[:a.index] {
		if !b.moved() && b.name[0] == a.name[0] && (b.ask == a.ask || a.op.kind == opRest && b.op.kind == opRest) {
			return true
		}
	}
	return false
}

// mayGo tells whether a's call can be carried out now. Who finds the record held
// by somebody else's transaction is told Busy. A leader that must know asks until
// it is not, which is modelled as waiting.
func (w *world) mayGo(a *actor) bool {
	switch k := a.op.kind; {
	case k == opCommit:
		return w.writer(a.op.row, a.op.session) == nil
	case k == opSwap && w.insists(a):
		return w.writer(a.op.row, nil) == nil
	case k == opWait:
		return a.op.settled()
	default:
		return true
	}
}

// insists tells whether the change that a asks for ends its own attempt, or is on its
// way already.
func (w *world) insists(a *actor) bool {
	if a.what == recordsLate || a.what == givesUp || w.written(&a.op.change) {
		return true
	}
	return w.stage.mode.shape.inline() && a.ask.fp != "" || w.drawer(a.op.change.If.Owner) == a.index
}

// heldByNobody tells whether a transaction that nobody waits for holds a record:
// its end must come before anything can be settled.
func (w *world) heldByNobody() bool {
	for _, s := range w.sessions {
		if s.orphan && s.holds() {
			return true
		}
	}
	return false
}

// serverWays lists what may become of what nobody waits for.
func (w *world) serverWays(into []way) []way {
	for i, s := range w.sessions {
		if !s.orphan {
			continue
		}
		if s.commits && !w.keptOff(s) {
			into = append(into, way{kind: wayCommit, who: i})
		}
		if s.holds() || s.whole {
			into = append(into, way{kind: wayAbort, who: i})
		}
	}
	for i, p := range w.posts {
		if p.change == nil || w.writer(w.indexOf(p.change.To.ID), nil) == nil {
			into = append(into, way{kind: wayArrive, who: i})
		}
	}
	return into
}

// take lets way happen.
func (w *world) take(way way) {
	w.tellWay(way)
	switch way.kind {
	case wayGo:
		w.budget.spend(way.how)
		a := w.actors[way.who]
		a.how = way.how
		a.goOn()
	case wayCommit:
		s := w.sessions[way.who]
		w.markLate(s, w.commit(s))
	case wayAbort:
		s := w.sessions[way.who]
		w.close(s)
		w.markLate(s, false)
	case wayArrive:
		w.mark(MarkArrived)
		w.arrive(way.who)
	case wayExpire:
		w.budget.Expiries--
		w.rows[way.who].come = true
	case wayBeat:
		w.budget.Beats--
		w.beat(&w.rows[way.who])
	case wayPurge:
		w.budget.Purges--
		w.outlive(&w.rows[way.who])
	case wayDelay:
		w.budget.Delays--
		w.mark(MarkDelay)
		w.rows[way.who].come = true
	case wayAge:
		w.budget.Ages--
		w.age()
	case wayLeave:
		w.budget.Leaves--
		w.mark(MarkLeft)
		a := w.actors[way.who]
		a.how = way.how
		a.note(uint64(wayLeave))
		a.proc.left = append(a.proc.left, a.index)
		a.leave()
		a.goOn()
	case wayCrash:
		w.budget.Crashes--
		w.mark(MarkCrash)
		w.actors[way.who].proc.crash()
	case waySettle:
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
