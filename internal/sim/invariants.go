package sim

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/semelgo/semel/store"
)

// check checks the invariants that hold in every state.
func (w *world) check() {
	for i := range w.stage.scopes {
		w.checkRow(i, &w.rows[i])
	}
	if w.stage.plan.EnqueuesTx && !w.settling {
		w.checkEnqueued()
	}
	for _, a := range w.actors {
		if a.response.kind != responseNone {
			w.checkResponse(a, a.response)
		}
		for _, t := range a.responses {
			w.checkResponse(a, t)
		}
	}
}

func (w *world) count(row, epoch int) int {
	n := 0
	for _, e := range w.effects {
		if e.row == row && e.epoch == epoch {
			n++
		}
	}
	return n
}

func (w *world) checkRow(i int, r *row) {
	for epoch := 0; epoch <= r.epoch; epoch++ {
		n := w.count(i, epoch)
		if most := w.maxEffects(i, epoch); n > most {
			w.fail("I1", "%d effects of one key, at most %d are promised", n, most)
		}
	}
	n := w.count(i, r.epoch)
	if r.rec.State == store.Failed && n > 0 {
		w.fail("I2", "the record is Failed and there is an effect")
	}
	if r.rec.State == store.Succeeded && n == 0 {
		w.fail("I3", "the record is Succeeded and there is no effect")
	}
}

// maxEffects returns how many effects the mode allows for one key: one, or
// under AtLeastOnce one for each attempt.
func (w *world) maxEffects(row, epoch int) int {
	if !w.stage.mode.repeats {
		return 1
	}
	n := 0
	for _, g := range w.grants {
		if g.row == row && g.epoch == epoch {
			n++
		}
	}
	return n
}

func (w *world) checkResponse(a *actor, t response) {
	switch t.kind {
	case responseOK, responseReplay:
		w.checkOK(a, t)
		w.checkCaller(a, t)
	case responseFailed:
		w.checkFailed(a, t)
		w.checkCaller(a, t)
	case responseQueued:
		if r := &w.rows[t.of.row]; r.rec.State == store.Absent && r.epoch == t.epoch {
			w.fail("I13", "%s received that its call is queued, and there is no record", a.name)
		}
	case responseReleased:
		for _, e := range w.effects {
			if e.actor == a.index && e.row == t.of.row && e.ask <= t.ask {
				w.fail("I2t", "%s received that it had no effect, and its effect exists", a.name)
			}
			if e.attempt < t.attempt && e.row == t.of.row && e.epoch == t.epoch {
				w.fail("I2k", "%s received that there was no effect, and an effect of an earlier attempt exists", a.name)
			}
		}
	case responseOther:
		w.fail("I12", "%s received %v, which is no defined response", a.name, t)
	case responseTokenUnknown, responseTokenExpired:
		checkNoEffectOf(w, a, t)
	case responseNone, responseUnknown, responseInDoubt, responseInProgress, responseMismatch, responseUnavailable, responseKinds:
	}
}

// checkOwnClaim checks R3: a lost reply makes no actor a follower of itself.
// The check runs when the response arrives, because an abandoned claim may be
// applied later.
func (w *world) checkOwnClaim(a *actor) {
	for i := range w.rows {
		r := &w.rows[i]
		if r.rec.State == store.InProgress && w.ownerActor(r.rec.Owner) == a.index {
			w.fail("R3", "%s received that %s is in progress, which is its own claim", a.name, w.token(r.rec.Token))
		}
	}
}

// checkAbandonedClaims checks I14 after all actors have ended: a caller that
// canceled before it led has left no claim. A takeover with a lost reply may
// still be applied later. It cannot be prevented, and its lease ends it.
func (w *world) checkAbandonedClaims() {
	for i := range w.rows {
		r := &w.rows[i]
		leader := w.ownerActor(r.rec.Owner)
		if r.rec.State != store.InProgress || leader < 0 {
			continue
		}
		if a := w.actors[leader]; a.proc == w.shared && a.status == statusDone && a.response.kind == responseUnavailable && !r.takenOver && a.proc.alive() {
			w.fail("I14", "%s gave up, and %s is left behind", a.name, w.token(r.rec.Token))
		}
	}
}

// checkOK checks that a reported effect exists, and that the response equals
// the stored outcome byte for byte. Therefore all callers receive the same.
func (w *world) checkOK(a *actor, t response) {
	there := false
	for _, e := range w.effects {
		there = there || e.row == t.of.row && e.value == t.value
	}
	if !there {
		w.fail("I3t", "%s received %v, and there is no such effect", a.name, t)
	}
	outcome, _ := json.Marshal(t.value)
	outcome = append([]byte{'j'}, outcome...)
	for _, e := range w.endings {
		if e.row == t.of.row && e.state == store.Succeeded && bytes.Equal(e.outcome, outcome) {
			return
		}
	}
	w.fail("I4", "%s received %v, which the record never had", a.name, t)
}

// checkFailed checks that a reported failure was stored, and that its key never
// has an effect.
func (w *world) checkFailed(a *actor, t response) {
	message, _ := json.Marshal(t.value)
	for _, e := range w.endings {
		if e.row != t.of.row || e.state != store.Failed || !bytes.Contains(e.outcome, message) {
			continue
		}
		if w.happened(e) {
			w.fail("I2t", "%s received %v, and there is an effect", a.name, t)
		}
		return
	}
	w.fail("I2t", "%s received %v, a failure that the record never had", a.name, t)
}

// happened reports whether an attempt that a failure covers has had an effect:
// any attempt of the key, or after a redrive the attempts so far.
func (w *world) happened(e changeEnd) bool {
	for _, f := range w.effects {
		if f.row == e.row && f.epoch == e.epoch && (f.attempt <= e.attempt || !w.stage.mode.retry) {
			return true
		}
	}
	return false
}

// checkCaller checks that a response belongs to the caller's own request and
// scope. A failure that the engine creates for an exhausted key names neither.
func (w *world) checkCaller(a *actor, t response) {
	value := strings.TrimPrefix(t.value, "the last error: ")
	if t.kind == responseFailed && w.stage.mode.retry && !strings.Contains(value, "/") {
		return
	}
	request, pause, _ := strings.Cut(value, "/")
	scope, _, _ := strings.Cut(pause, "/")
	if request != t.of.fp {
		w.fail("I8", "%s sent %q and received %v", a.name, t.of.fp, t)
	}
	if scope != w.stage.scopes[t.of.row] {
		w.fail("I10", "%s sent a request in scope %q and received %v", a.name, w.stage.scopes[t.of.row], t)
	}
}

// checkToken checks I17 and I18: an attempt never creates the record of a token, and none
// starts for a request that was sent after the token's time. An attempt that was started
// before may be taken over at any time.
func checkToken(w *world, actor int, before *row, to store.Token) {
	if !w.stage.plan.Issued || to.State == store.Pending {
		return
	}
	a := w.actors[actor]
	switch before.rec.State {
	case store.Absent:
		w.fail("I17", "%s creates %s of a token that does not exist", a.name, w.token(to))
	case store.Pending:
		if a.late && !before.rec.Tainted {
			w.fail("I18", "%s uses a token after its time: %s", a.name, w.token(to))
		}
	case store.InProgress:
		if before.tokenOver && to.State == store.InProgress {
			w.mark(MarkTokenLate)
		}
	case store.InDoubt, store.Succeeded, store.Failed:
	}
}

// checkTokenResponse checks when a caller receives that its token is unknown or expired.
func checkTokenResponse(w *world, a *actor, t response) {
	r := &w.rows[a.ask.row]
	if t.kind == responseTokenUnknown {
		w.mark(MarkTokenUnknown)
		if r.epoch == 0 {
			w.fail("I17", "%s received that its token is unknown, and it was issued", a.name)
		}
	}
	if t.kind == responseTokenExpired {
		w.mark(MarkTokenExpired)
		if !r.tokenOver && r.epoch == 0 {
			w.fail("I18", "%s received that its token is expired, and its time is not over", a.name)
		}
	}
}

// checkNoEffectOf checks that the call had no effect.
func checkNoEffectOf(w *world, a *actor, t response) {
	for _, e := range w.effects {
		if e.actor == a.index && e.row == t.of.row && e.ask == t.ask {
			w.fail("I2t", "%s received %v, and its effect exists", a.name, t)
		}
	}
}

// isTokenOver reports whether a retry that receives t has settled the key of a token: it
// can no longer be used.
func isTokenOver(r *row, t response) bool {
	return t.kind == responseTokenUnknown && r.rec.State == store.Absent ||
		t.kind == responseTokenExpired && r.rec.State == store.Pending && r.tokenOver && !r.rec.Tainted
}
