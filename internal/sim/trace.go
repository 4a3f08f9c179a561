package sim

import (
	"fmt"
	"strings"

	"github.com/semelgo/semel/store"
)

// trace holds a line for each step of a run. It is nil during explorations.
type trace struct{ lines []string }

// logf adds a result to the line of the current step.
func (w *world) logf(format string, args ...any) {
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

func (w *world) logEvent(event event) {
	if w.trace == nil {
		return
	}
	w.trace.lines = append(w.trace.lines, fmt.Sprintf("%3d  %s", len(w.trace.lines)+1, w.eventText(event)))
}

func (w *world) eventText(event event) string {
	switch event.kind {
	case eventCall:
		a := w.actors[event.index]
		text := a.name + " " + w.opText(&a.op)
		if event.callResult != resultOK {
			text += ", which " + event.callResult.String()
		}
		return text
	case eventCommit:
		return w.actors[w.sessions[event.index].actor].name + "'s transaction commits after all, if it still can"
	case eventAbort:
		return w.actors[w.sessions[event.index].actor].name + "'s transaction is rolled back by the server"
	case eventLateArrival:
		return w.actors[w.lateRequests[event.index].actor].name + "'s late request arrives after all"
	case eventExpire:
		return "the lease of " + w.token(w.rows[event.index].rec.Token) + " is over"
	case eventRenew:
		return "the leader renews " + w.token(w.rows[event.index].rec.Token) + " although it has expired"
	case eventPurge:
		return "the retention of " + w.token(w.rows[event.index].rec.Token) + " is over"
	case eventCancel:
		a := w.actors[event.index]
		text := a.name + " cancels before it can " + w.opText(&a.op)
		if event.callResult != resultOK {
			text += ", which " + event.callResult.String()
		}
		return text
	case eventAge:
		return "cache entries become older"
	case eventDelay:
		return "what waits as " + w.token(w.rows[event.index].rec.Token) + " is due"
	case eventTokenOver:
		return "the time of the token is over"
	case eventCrash:
		a := w.actors[event.index]
		return a.name + " dies before it can " + w.opText(&a.op)
	case eventSettle:
	}
	return "all actors have ended; a retry follows"
}

func (w *world) opText(o *op) string {
	text := o.kind.String()
	if len(w.stage.scopes) > 1 || w.rows[o.row].isCancelRequest {
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
	case k == opEffect || k == opRaise:
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

func (w *world) logResult(s store.SwapResult, inForce bool) {
	switch {
	case w.trace == nil:
	case inForce:
		w.logf("applied")
	case s.Busy:
		w.logf("busy")
	default:
		w.logf("current: %s", w.token(s.Token))
	}
}
