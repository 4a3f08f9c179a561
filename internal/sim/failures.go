package sim

import (
	"bytes"

	"github.com/semelgo/semel/store"
)

// counts counts the failed attempts of a record with a key that the system owns.
// It does not use the engine's own counts.
type counts struct {
	errors  int // attempts whose function returned an error, and that recorded it
	crashes int // attempts that another actor ended
}

func (t *counts) digest(d digest) digest {
	return d.add(uint64(t.errors)<<16 | uint64(t.crashes))
}

// noteBegun records that the function of an attempt runs.
func (w *world) noteBegun(g grant) {
	was := w.grantOf(g)
	if was == nil || !w.stage.mode.retry {
		return
	}
	was.begun = true
	if t, p := was.before, &w.stage.plan; t.crashes >= p.MaxCrashes || t.errors >= p.MaxErrors {
		w.fail("I15", "%s runs attempt %d after %d errors and %d crashes", w.actors[g.actor].name, g.attempt, t.errors, t.crashes)
	}
}

// noteError records that the function of an attempt returned an error.
func (w *world) noteError(g grant) {
	if was := w.grantOf(g); was != nil {
		was.erred = true
	}
}

// grantsDigest covers the limits that apply to attempts that have not begun.
func (w *world) grantsDigest() uint64 {
	var sum uint64
	for _, g := range w.grants {
		if w.stage.mode.retry && !g.begun {
			sum += uint64(g.before.digest(digestSeed.add(uint64(g.row)).add(uint64(g.attempt))))
		}
	}
	return sum
}

func (w *world) grantOf(g grant) *grant {
	for i := range w.grants {
		if was := &w.grants[i]; was.row == g.row && was.attempt == g.attempt && was.owner == g.owner {
			return was
		}
	}
	return nil
}

// redrives reports whether a change is a redrive: an operator sets a Failed
// record with a key that the system owns to Pending.
func (w *world) redrives(actor int, from, to store.Token) bool {
	return w.stage.mode.retry && w.actors[actor].ask.person && from.State == store.Failed && to.State == store.Pending
}

// redrivesDoubt reports whether a change is the redrive of a record in doubt.
func (w *world) redrivesDoubt(actor int, from, to store.Token) bool {
	return w.actors[actor].ask.redrives && from.State == store.InDoubt && to.State == store.Pending
}

// checkRedrive checks the redrive of a record in doubt. The system must own the
// key, the policy must allow another attempt, and the record must stay tainted.
func (w *world) checkRedrive(actor int, from store.Token, after *row) {
	switch m := w.stage.mode; {
	case !m.retry || !m.runsAgain():
		w.fail("I6", "%s redrives %s, whose policy allows no other attempt", w.actors[actor].name, w.token(from))
	case m.receiverKind != inRecordsDB && !after.rec.Tainted:
		w.fail("I2", "%s redrives %s, and the record forgets that an attempt may have had an effect", w.actors[actor].name, w.token(from))
	}
}

// countFailures counts errors and crashes. It checks that no key is exhausted
// before the limit.
func (w *world) countFailures(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	t := &w.tallies[w.indexOf(after.id)]
	person := from.State == store.Failed || from.State == store.InDoubt
	switch {
	case person && to.State == store.Pending: // they have said to begin anew
		*t = counts{}
	case from.State == store.InDoubt && w.leads(actor, before): // it was taken for dead
		t.crashes--
		w.countOwnFailure(t, after)
	case from.State == store.InProgress && !w.leads(actor, before):
		if !to.State.Final() {
			t.crashes++
		}
	case from.State == store.InProgress:
		w.countOwnFailure(t, after)
	}
	if to.State != store.Failed || !bytes.Contains(after.rec.Outcome, []byte(`"exhausted"`)) {
		return
	}
	if p := &w.stage.plan; t.crashes < p.MaxCrashes && t.errors < p.MaxErrors {
		w.fail("I15", "%s gives %s up after %d errors and %d crashes", w.actors[actor].name, w.token(from), t.errors, t.crashes)
	}
}

// countOwnFailure counts the error that a leader records for its own attempt.
func (w *world) countOwnFailure(t *counts, after *row) {
	g := w.grantOf(grant{row: w.indexOf(after.id), attempt: after.rec.Attempt, owner: after.rec.Owner})
	if g == nil || after.rec.State == store.Succeeded {
		return
	}
	if g.erred {
		t.errors++
	}
	if !g.begun && after.rec.State == store.Pending {
		w.mark(MarkLostClaimReleased)
	}
}

// markFailure marks why a record failed.
func (w *world) markFailure(from store.State, outcome []byte) {
	code := func(name string) bool { return bytes.Contains(outcome, []byte(`"`+name+`"`)) }
	switch {
	case code("cancelled") && from == store.Pending:
		w.mark(MarkCancelWaiting)
	case code("cancelled"):
		w.mark(MarkCancelRunning)
	case code("exhausted") && bytes.Contains(outcome, []byte("attempts crashed")):
		w.mark(MarkCrashesExhausted)
	case code("exhausted"):
		w.mark(MarkErrorsExhausted)
	}
}
