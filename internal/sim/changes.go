package sim

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// Violation is an invariant that a run broke.
type Violation struct {
	Invariant string
	Text      string
	// Replay repeats the run: it is an argument for Replay and for the program's -replay.
	Replay string
	// Trace has a line for each step of the run.
	Trace []string
}

// String returns the violation, its replay line and its trace.
func (v *Violation) String() string {
	return fmt.Sprintf("%s is broken: %s\nreplay: %s\n%s", v.Invariant, v.Text, v.Replay, strings.Join(v.Trace, "\n"))
}

// fail reports a broken invariant. Only the first one of a run counts, and only
// watched invariants do.
func (w *world) fail(invariant, format string, args ...any) {
	if w.found == nil && w.stage.watches(invariant) {
		w.found = &Violation{Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	}
}

// changeEnd is a final record that a key has had.
type changeEnd struct {
	row, epoch int
	token      store.Token
	attempt    uint32
	state      store.State
	outcome    []byte
	replaced   bool // the record is no longer current
	since      int  // cache ages that had passed then
}

// checkChange checks the invariants for each change of a record.
func (w *world) checkChange(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	if after.isCancelRequest {
		return
	}
	if from.State == store.Absent {
		after.request = w.actors[actor].ask.fp
	}
	if from == to {
		w.checkRenewal(actor, before)
		return
	}
	if w.stage.mode.retry {
		w.countFailures(actor, before, after)
	}
	w.checkClaim(actor, before, after)
	checkToken(w, actor, before, to)
	if from.State.Final() && !w.redrives(actor, from, to) {
		w.fail("I6", "%s changes what is final: %v to %v", w.actors[actor].name, from.State, to.State)
	}
	if from.State.Unfinished() && !w.leads(actor, before) {
		w.checkNonLeader(actor, before, after)
	}
	if w.redrivesDoubt(actor, from, to) {
		w.checkRedrive(actor, from, after)
	}
	if from.State.Final() {
		w.markReplaced(before)
	}
	if to.State.Final() {
		w.checkFinal(actor, after)
	}
	w.markChange(actor, before, after)
}

// checkRenewal checks the renewal of a lease.
func (w *world) checkRenewal(actor int, before *row) {
	if !w.leads(actor, before) {
		w.fail("I7", "%s renews the lease of %s", w.actors[actor].name, w.token(before.rec.Token))
	}
	if before.due {
		w.mark(MarkRenewed)
	}
}

// leads reports whether the actor leads the current attempt. It also does so
// after another actor has set the record to InDoubt.
func (w *world) leads(actor int, r *row) bool {
	if r.rec.State == store.InProgress {
		return w.ownerActor(r.rec.Owner) == actor
	}
	for _, g := range w.grants {
		if g.actor == actor && g.row == w.indexOf(r.id) && g.epoch == r.epoch && g.attempt == r.rec.Attempt {
			return true
		}
	}
	return false
}

func (w *world) checkClaim(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	if to.Attempt < from.Attempt {
		w.fail("I5", "the attempt goes back: %s to %s", w.token(from), w.token(to))
	}
	if to.State != store.InProgress {
		return
	}
	g := grant{row: w.indexOf(after.id), epoch: after.epoch, attempt: to.Attempt, owner: to.Owner, actor: actor}
	g.before = w.tallies[g.row]
	for _, other := range w.grants {
		if other.row == g.row && other.epoch == g.epoch && other.attempt == g.attempt {
			w.fail("I5", "attempt %d has two owners: %s and %s", g.attempt, w.actors[other.actor].name, w.actors[actor].name)
		}
	}
	w.grants = append(w.grants, g)
	if from.State == store.Pending && !before.due {
		w.fail("I9", "%s claims %s, which is not due", w.actors[actor].name, w.token(from))
	}
}

// checkNonLeader checks a change of an unfinished record by an actor that does
// not lead it. Expiry allows takeover, requeue and doubt. Evidence allows
// healing. An operator may resolve a doubt. Each of them draws a new owner.
func (w *world) checkNonLeader(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	a := w.actors[actor]
	if a.ask.person && from.State == store.InDoubt {
		return
	}
	_, old := w.granted(grant{row: w.indexOf(after.id), attempt: to.Attempt, owner: to.Owner})
	old = old && to.State != store.InProgress
	heals := to.State == store.Succeeded && to.Attempt == from.Attempt && w.effectOf(w.indexOf(after.id)) != nil
	expiry := from.State == store.InProgress && (to.Attempt == from.Attempt+1 ||
		to.Attempt == from.Attempt && (to.State == store.Pending || to.State == store.InDoubt))
	switch {
	case old || !heals && !expiry:
		w.fail("I7", "%s, which does not lead %s, makes it %s", a.name, w.token(from), w.token(to))
	case !heals && !before.due:
		w.fail("I9", "%s makes %s out of %s, whose lease is running", a.name, w.token(to), w.token(from))
	}
}

// checkFinal checks an outcome when it is recorded.
func (w *world) checkFinal(actor int, r *row) {
	w.endings = append(w.endings, changeEnd{
		row: w.indexOf(r.id), epoch: r.epoch, token: r.rec.Token, attempt: r.rec.Attempt, state: r.rec.State, outcome: r.rec.Outcome,
	})
	if r.rec.State == store.Succeeded && !bytes.Contains(r.rec.Outcome, []byte(r.request+"/")) {
		w.fail("I8", "%s records %q for a request %q", w.actors[actor].name, r.rec.Outcome, r.request)
	}
	if r.rec.State == store.Succeeded && !bytes.Contains(r.rec.Outcome, []byte("/"+r.scope+"/")) {
		w.fail("I10", "%s records %q in scope %q", w.actors[actor].name, r.rec.Outcome, r.scope)
	}
}

// checkEffect checks an effect when it happens.
func (w *world) checkEffect(e effect) {
	g, ok := w.granted(grant{row: e.row, attempt: e.attempt, owner: e.owner})
	if w.stage.mode.shape.inline() {
		return // no claim precedes the effect: it commits together with its record
	}
	if !ok || g.actor != e.actor {
		w.fail("I11", "%s has an effect as attempt %d, which it was never granted", w.actors[e.actor].name, e.attempt)
	}
}

func (w *world) markChange(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	stranger := !w.leads(actor, before)
	switch {
	case from.State == store.InProgress && to.State == store.InProgress:
		w.mark(MarkTakeover)
		// An actor that runs the store's own test may use owners that no actor drew.
		if i := w.ownerActor(from.Owner); i >= 0 {
			w.actors[i].taken = true
		}
	case from.State == store.InProgress && to.State == store.Pending && stranger:
		w.mark(MarkRequeue)
	case from.State == store.InProgress && to.State == store.Pending && after.rec.Tainted && !before.rec.Tainted:
		w.mark(MarkReleasedTainted)
	case from.State == store.InProgress && to.State == store.Pending:
		w.mark(MarkRelease)
	case w.stage.mode.shape.inline() && to.State == store.Pending:
		w.mark(MarkVoid)
	case to.State == store.InDoubt:
		w.mark(MarkDoubt)
	case to.State == store.Failed:
		w.mark(MarkFail)
		w.markFailure(from.State, after.rec.Outcome)
	case from.State == store.Failed:
		w.mark(MarkRedrive)
	case w.redrivesDoubt(actor, from, to):
		w.mark(MarkRedriveDoubt)
	case from.State == store.InDoubt && w.actors[actor].ask.person:
		w.mark(MarkResolve)
	case from.State == store.InDoubt && !stranger:
		w.mark(MarkSettle)
	case from.State.Unfinished() && to.State == store.Succeeded && stranger && to.Attempt == from.Attempt:
		w.mark(MarkHeal)
	}
}
