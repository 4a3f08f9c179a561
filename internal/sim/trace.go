package sim

import (
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// trace tells a run in words. Exploring goes without.
type trace struct{ lines []string }

// say adds what came of the step that is told.
func (w *world) say(format string, args ...any) {
	if w.trace == nil || len(w.trace.lines) == 0 {
		return
	}
	last := &w.trace.lines[len(w.trace.lines)-1]
	sep := ": "
	if strings.Contains(*last, sep) {
		sep = "; "
	}
	*last += sep + fmt.Sprintf(format, args...)
}

func (w *world) tellWay(way way) {
	if w.trace == nil {
		return
	}
	w.trace.lines = append(w.trace.lines, fmt.Sprintf("%3d  %s", len(w.trace.lines)+1, w.wayText(way)))
}

func (w *world) wayText(way way) string {
	switch way.kind {
	case wayGo:
		a := w.actors[way.who]
		text := a.name + " " + w.opText(&a.op)
		if way.how != howOK {
			text += ", which " + way.how.String()
		}
		return text
	case wayCommit:
		return w.actors[w.sessions[way.who].actor].name + "'s transaction commits after all, if it still can"
	case wayAbort:
		return w.actors[w.sessions[way.who].actor].name + "'s transaction is rolled back by the server"
	case wayArrive:
		return w.actors[w.posts[way.who].actor].name + "'s late request arrives after all"
	case wayExpire:
		return "the lease of " + w.token(w.rows[way.who].rec.Token) + " is over"
	case wayBeat:
		return "the leader renews " + w.token(w.rows[way.who].rec.Token) + " all the same"
	case wayPurge:
		return "the retention of " + w.token(w.rows[way.who].rec.Token) + " is over"
	case wayLeave:
		a := w.actors[way.who]
		text := a.name + " gives up before it can " + w.opText(&a.op)
		if way.how != howOK {
			text += ", which " + way.how.String()
		}
		return text
	case wayAge:
		return "what is remembered gets older"
	case wayDelay:
		return "what waits as " + w.token(w.rows[way.who].rec.Token) + " is due"
	case wayCrash:
		a := w.actors[way.who]
		return a.name + " dies before it can " + w.opText(&a.op)
	case waySettle:
	}
	return "everybody is done; a retry comes"
}

func (w *world) opText(o *op) string {
	text := o.kind.String()
	if len(w.stage.scopes) > 1 || w.rows[o.row].wish {
		text += " in " + w.rows[o.row].scope
	}
	switch k := o.kind; {
	case len(o.batch) > 0:
		text += w.batchText(o.batch)
	case k == opWait && o.change.To.State == store.Absent:
	case k == opSwap || k == opCommit || k == opWait:
		due := ""
		if o.change.IfDue {
			due = " if due"
		}
		text += fmt.Sprintf(" %s -> %s%s", w.token(o.change.If), w.token(o.change.To.Token), due)
	case k == opBegin && o.hold:
		text += ", holding the record"
	case k == opDequeue && o.again:
		text += " what an earlier one claimed"
	case k == opAct || k == opRaise:
		text += fmt.Sprintf(" as attempt %d", o.attempt.attempt)
	}
	return text
}

func (w *world) batchText(batch []store.Change) string {
	var b strings.Builder
	for i := range batch {
		fmt.Fprintf(&b, ", %s -> %s", w.token(batch[i].If), w.token(batch[i].To.Token))
	}
	return b.String()
}

// token writes a token with its owner's name in place of the random number.
func (w *world) token(t store.Token) string {
	if t.State == store.Absent {
		return "Absent"
	}
	for _, n := range w.names {
		if n.owner == t.Owner {
			return fmt.Sprintf("%v(%d,%s.%d)", t.State, t.Attempt, w.actors[n.actor].name, n.nth)
		}
	}
	return fmt.Sprintf("%v(%d,?)", t.State, t.Attempt)
}

func (w *world) sayStanding(s store.SwapResult, inForce bool) {
	switch {
	case w.trace == nil:
	case inForce:
		w.say("in force")
	case s.Busy:
		w.say("busy")
	default:
		w.say("%s stands", w.token(s.Token))
	}
}
