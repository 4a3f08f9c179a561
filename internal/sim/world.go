package sim

import (
	"github.com/semelgo/semel"
	"github.com/semelgo/semel/store"
)

// world is everything in one run: the database, the receivers of effects, and
// the processes.
type world struct {
	stage  *stage
	choose *chooser
	budget Budget

	actors       []*actor
	rows         []row
	sessions     []*session
	lateRequests []lateRequest
	receivers    []receiver
	tallies      []counts
	effects      []effect
	grants       []grant

	names    []name // of owners
	marks    *Marks
	found    *Violation
	endings  []changeEnd
	shared   *process // nil unless callers are together
	settling bool
	ages     int // that have passed

	processes []*process
	trace     *trace // nil unless the run is printed
}

// name replaces a random owner by the actor that drew it and the number of its
// draw. It is equal in all runs that reach the same state.
type name struct {
	owner uint64
	actor int
	nth   int
}

func newWorld(s *stage, c *chooser, m *Marks) *world {
	w := &world{stage: s, choose: c, budget: s.plan.Budget, marks: m}
	w.rows = make([]row, len(s.scopes), 2*len(s.scopes))
	w.receivers = make([]receiver, len(s.scopes))
	w.tallies = make([]counts, len(s.scopes))
	for i, scope := range s.scopes {
		w.rows[i] = row{id: s.call(request{row: i, fp: s.plan.requests()[:1]}).ID(), scope: scope}
		if len(s.queued) > 0 {
			w.rows[i].rec, w.rows[i].due, w.rows[i].request = s.queued[i], true, s.plan.requests()[:1]
			w.rows[i].hasExpiry = s.plan.Issued
		}
	}
	for i := range s.scopes {
		w.rows = append(w.rows, row{id: s.cancelIDs[i], scope: "the wish to cancel", isCancelRequest: true})
	}
	for _, cast := range s.cast {
		w.enlist(cast)
	}
	return w
}

// enlist adds an actor.
func (w *world) enlist(c role) *actor {
	a := &actor{w: w, index: len(w.actors), name: c.name, body: c.body, ask: c.ask, shares: c.shares, history: digestSeed}
	w.actors = append(w.actors, a)
	return a
}

func (w *world) indexOf(id store.ID) int {
	for i := range w.rows {
		if w.rows[i].id == id {
			return i
		}
	}
	w.fail("record", "a call names %v, a record that no caller uses", id)
	return 0
}

func (w *world) row(id store.ID) *row { return &w.rows[w.indexOf(id)] }

func (w *world) rowOf(scope semel.Scope) int {
	for i, s := range w.stage.scopes {
		if parts := scope.Parts(); len(parts) == 1 && parts[0] == s {
			return i
		}
	}
	w.fail("record", "a call is about %v, a scope that no caller used", scope)
	return 0
}

// nameOwner names an owner when it is first seen.
func (w *world) nameOwner(a *actor, owner uint64) {
	if owner == 0 {
		return
	}
	for i := range w.names {
		if w.names[i].owner == owner {
			return
		}
	}
	a.owners++
	w.names = append(w.names, name{owner: owner, actor: a.index, nth: a.owners})
}

// ownerNumber returns the name of an owner as a number, or 0 for an unknown
// owner.
func (w *world) ownerNumber(owner uint64) uint64 {
	for i := range w.names {
		if n := &w.names[i]; n.owner == owner {
			return uint64(n.actor+1)<<16 | uint64(n.nth)
		}
	}
	return 0
}

// ownerActor returns the actor that drew an owner, or -1.
func (w *world) ownerActor(owner uint64) int {
	for i := range w.names {
		if w.names[i].owner == owner {
			return w.names[i].actor
		}
	}
	return -1
}

// granted returns the applied claim with g's token.
func (w *world) granted(g grant) (grant, bool) {
	for _, was := range w.grants {
		if was.row == g.row && was.attempt == g.attempt && was.owner == g.owner {
			return was, true
		}
	}
	return grant{}, false
}

// happen executes an effect.
func (w *world) happen(e effect) {
	w.effects = append(w.effects, e)
	w.checkEffect(e)
}

// truth is a digest of everything that a ghost must not change.
func (w *world) truth() digest {
	batchResult := 0
	for _, s := range w.sessions {
		if s.commits {
			batchResult++
		}
	}
	d := digestSeed.add(uint64(len(w.effects))).add(uint64(len(w.lateRequests))).add(uint64(batchResult))
	for i := range w.rows {
		d = w.rowDigest(d, &w.rows[i])
	}
	return d
}

// digest covers everything that the next events depend on.
func (w *world) digest() digest {
	d := w.budget.digest(digestSeed)
	for i := range w.rows {
		if !w.rows[i].isCancelRequest || w.stage.mode.retry {
			d = w.rowDigest(d, &w.rows[i])
		}
	}
	for i := range w.receivers {
		d = d.add(uint64(w.receivers[i].fence)).flag(w.receivers[i].forbidden)
		d = w.tallies[i].digest(d)
	}
	d = w.sessionsDigest(d)
	var sum uint64
	for _, e := range w.effects {
		x := digestSeed.add(uint64(e.row)).add(uint64(e.epoch)).add(uint64(e.actor))
		sum += uint64(x.add(uint64(e.attempt)).text(e.value))
	}
	d = d.add(sum).add(w.grantsDigest())
	for _, a := range w.actors {
		if !a.isHelper() {
			d = a.digest(d)
		}
	}
	if w.shared != nil {
		d = w.shared.digest(d)
	}
	if w.stage.plan.Budget.CacheAges > 0 {
		d = w.memoryDigest(d)
	}
	return d
}
