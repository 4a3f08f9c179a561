package sim

import (
	"bytes"
	"encoding/json"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/store"
)

// halfAge is a little more than half of the maximum age of a cache entry, so
// that two of them exceed it.
const halfAge = lease/2 + lease/10

// age makes the entries of all caches older.
func (w *world) age() {
	w.ages++
	for _, p := range w.processes {
		p.older(halfAge)
	}
	for _, a := range w.actors {
		if a.status == statusReady {
			a.note(uint64(eventAge)) // what it has requested gets older too
		}
	}
}

// pause lets time pass before the next call: a cache answers without any store
// call. Late callers pause before their first call too.
func (a *actor) pause() {
	p := &a.w.stage.plan
	later := a.index >= len(p.Callers)-p.LateCallers
	if (p.Budget.CacheAges > 0 && a.callCount > 0 || later && a.callCount == 0) && !a.free {
		a.call(op{kind: opPause, row: a.ask.row})
	}
}

// markReplaced records that a final record is no longer current.
func (w *world) markReplaced(r *row) {
	for i := range w.endings {
		if e := &w.endings[i]; e.token == r.rec.Token && !e.replaced {
			e.replaced, e.since = true, w.ages
		}
	}
}

// purge removes a record.
func (w *world) purge(r *row) {
	w.markReplaced(r)
	r.purge()
}

// checkCached checks the age of a response. The response came from the cache if
// the call added nothing to the actor's history.
func (a *actor) checkCached(memory bool) {
	t := a.response
	final := t.kind == responseReplay || t.kind == responseFailed
	switch {
	case a.status == statusDead || !final:
		return
	case memory:
		a.w.mark(MarkCacheHit)
	case a.since > 0 && a.callCount > 1 && t.kind == responseReplay:
		a.w.mark(MarkCacheExpired)
	}
	if a.w.isStale(t, a.since) {
		a.w.fail("I17", "%s received %v, which the record had not had for longer than the maximum age of the cache", a.name, t)
	}
}

// isStale reports whether every stored outcome that the response can come from
// was replaced at least twice halfAge before the call.
func (w *world) isStale(t response, since int) bool {
	text, _ := json.Marshal(t.value)
	old := false
	for _, e := range w.endings {
		if e.row != t.of.row || !bytes.Contains(e.outcome, text) {
			continue
		}
		if old = e.replaced && since-e.since >= 2; !old {
			return false
		}
	}
	return old
}

// memoryDigest covers the caches of the engines, and the ages that decide what
// they may return.
func (w *world) memoryDigest(d digest) digest {
	for _, e := range w.endings {
		d = d.add(uint64(e.token.State)).add(w.ownerNumber(e.token.Owner)).flag(e.replaced).add(uint64(w.ages - e.since))
		for _, p := range w.processes {
			remembered := adapter.Cached(p.engine, &adapter.Outcome{Record: store.Record{ID: w.rows[e.row].id, Token: e.token}})
			d = d.flag(remembered != nil)
		}
	}
	for _, a := range w.actors {
		d = d.add(uint64(w.ages - a.since))
	}
	return d
}
