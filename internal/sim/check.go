package sim

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/semelgo/semel/store"
)

// check holds what is true now against what must always be true.
func (w *world) check() {
	for i := range w.rows {
		w.checkRow(i, &w.rows[i])
	}
	for _, a := range w.actors {
		if a.told.tale != toldNothing {
			w.checkTold(a)
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
		if most := w.mostEffects(i, epoch); n > most {
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

// mostEffects is what the mode promises for one key: one, or under AtLeastOnce
// one for each attempt.
func (w *world) mostEffects(row, epoch int) int {
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

func (w *world) checkTold(a *actor) {
	switch a.told.tale {
	case toldOK, toldReplay:
		w.checkOK(a)
		w.checkBelongs(a)
	case toldFailed:
		w.checkFailed(a)
		w.checkBelongs(a)
	case toldReleased:
		for _, e := range w.effects {
			if e.actor == a.index && e.ask <= a.told.ask {
				w.fail("I2t", "%s was told that nothing happened, and its effect is there", a.name)
			}
			if e.attempt < a.told.attempt && e.row == a.ask.row && e.epoch == a.told.epoch {
				w.fail("I2k", "%s was told that nothing happened, and an earlier attempt's effect is there", a.name)
			}
		}
	case toldOther:
		w.fail("I12", "%s was told %v, which tells it nothing", a.name, a.told)
	case toldNothing, toldUnknown, toldInDoubt, toldInProgress, toldMismatch, toldUnavailable, tales:
	}
}

// checkWaits: a lost reply makes nobody a follower of itself. It is looked at
// when it is told; later, a claim that was given up may yet arrive.
func (w *world) checkWaits(a *actor) {
	for i := range w.rows {
		r := &w.rows[i]
		if r.rec.State == store.InProgress && w.drawer(r.rec.Owner) == a.index {
			w.fail("R3", "%s was told to wait for %s, which is its own", a.name, w.token(r.rec.Token))
		}
	}
}

// checkOK: an effect that was told is there, and what was told is, byte for
// byte, what the record says, so that all who are told are told the same.
func (w *world) checkOK(a *actor) {
	there := false
	for _, e := range w.effects {
		there = there || e.row == a.ask.row && e.value == a.told.value
	}
	if !there {
		w.fail("I3t", "%s was told %v, and no such effect is there", a.name, a.told)
	}
	outcome, _ := json.Marshal(a.told.value)
	outcome = append([]byte{'j'}, outcome...)
	for _, e := range w.endings {
		if e.row == a.ask.row && e.state == store.Succeeded && bytes.Equal(e.outcome, outcome) {
			return
		}
	}
	w.fail("I4", "%s was told %v, and that never stood in the record", a.name, a.told)
}

// checkFailed: a failure that was told stood in the record, and its key never
// had and never has an effect.
func (w *world) checkFailed(a *actor) {
	message, _ := json.Marshal(a.told.value)
	for _, e := range w.endings {
		if e.row != a.ask.row || e.state != store.Failed || !bytes.Contains(e.outcome, message) {
			continue
		}
		if w.count(e.row, e.epoch) > 0 {
			w.fail("I2t", "%s was told %v, and there is an effect", a.name, a.told)
		}
		return
	}
	w.fail("I2t", "%s was told %v, and no such failure ever stood", a.name, a.told)
}

// checkBelongs: an answer is that of the caller's own request and scope.
func (w *world) checkBelongs(a *actor) {
	request, rest, _ := strings.Cut(a.told.value, "/")
	scope, _, _ := strings.Cut(rest, "/")
	if request != a.ask.fp {
		w.fail("I8", "%s asked for %q and was told %v", a.name, a.ask.fp, a.told)
	}
	if scope != w.stage.scopes[a.ask.row] {
		w.fail("I10", "%s asked in scope %q and was told %v", a.name, w.stage.scopes[a.ask.row], a.told)
	}
}
