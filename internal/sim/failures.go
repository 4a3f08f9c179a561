package sim

import (
	"bytes"

	"github.com/semelgo/semel/store"
)

// tally counts, as they happen, the attempts of a record whose key the system
// owns: what the engine keeps of them is not asked.
type tally struct {
	errors  int // attempts whose function returned an error, and that said so
	crashes int // attempts that somebody else ended
}

func (t *tally) digest(d digest) digest {
	return d.add(uint64(t.errors)<<16 | uint64(t.crashes))
}

// begins sees the function of an attempt being run.
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

// errs sees the function of an attempt return an error.
func (w *world) noteError(g grant) {
	if was := w.grantOf(g); was != nil {
		was.erred = true
	}
}

// grantsDigest covers what attempts that have not begun will be held to.
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

// redrives tells whether a change is that of a person who sends round again what
// has failed, under a key that the system owns.
func (w *world) redrives(actor int, from, to store.Token) bool {
	return w.stage.mode.retry && w.actors[actor].ask.person && from.State == store.Failed && to.State == store.Pending
}

// redrivesDoubt reports whether a change is the redrive of a record in doubt.
func (w *world) redrivesDoubt(actor int, from, to store.Token) bool {
	return w.actors[actor].ask.redrives && from.State == store.InDoubt && to.State == store.Pending
}

// judgeRedrive sees the redrive of a record in doubt. The system owns the key, the
// policy allows another attempt, and the record remembers that its last attempt may
// have had an effect.
func (w *world) checkRedrive(actor int, from store.Token, after *row) {
	switch m := w.stage.mode; {
	case !m.retry || !m.runsAgain():
		w.fail("I6", "%s redrives %s, whose policy allows no other attempt", w.actors[actor].name, w.token(from))
	case m.outside != inRecordsDB && !after.rec.Tainted:
		w.fail("I2", "%s redrives %s, and the record forgets that an attempt may have had an effect", w.actors[actor].name, w.token(from))
	}
}

// judgeTries counts errors and crashes, and sees that a key is not given up
// before there are enough of them.
func (w *world) countFailures(actor int, before, after *row) {
	from, to := before.rec.Token, after.rec.Token
	t := &w.tallies[w.indexOf(after.id)]
	person := from.State == store.Failed || from.State == store.InDoubt
	switch {
	case person && to.State == store.Pending: // they have said to begin anew
		*t = tally{}
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

// judgeWord sees a leader say how its own attempt ended.
func (w *world) countOwnFailure(t *tally, after *row) {
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

// markFailure tells apart why a record failed.
func (w *world) markFailure(from store.State, outcome []byte) {
	code := func(name string) bool { return bytes.Contains(outcome, []byte(`"`+name+`"`)) }
	switch {
	case code("cancelled") && from == store.Pending:
		w.mark(MarkCancelWaiting)
	case code("cancelled"):
		w.mark(MarkCancelRunning)
	case code("exhausted") && bytes.Contains(outcome, []byte("without a word")):
		w.mark(MarkCrashesExhausted)
	case code("exhausted"):
		w.mark(MarkErrorsExhausted)
	}
}
