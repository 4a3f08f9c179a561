package sim

import "github.com/semelgo/semel/store"

// flush asks for what several callers want, in one step: all of it arrives, or
// nothing, and the answers come together.
func (a *actor) flush(changes []store.Change) ([]store.SwapResult, error) {
	w := a.w
	if err := store.CheckBatch(changes, maxBatch); err != nil {
		w.fail("batch", "%s asks for what no store takes: %v", a.name, err)
	}
	h := a.call(op{kind: opSwap, row: w.indexOf(changes[0].To.ID), batch: changes})
	if len(changes) > 1 && h == howOK {
		w.mark(MarkFlush)
	}
	answers := make([]store.SwapResult, len(changes))
	for i := range changes {
		answers[i] = a.flushed(&changes[i], h)
		if asker := a.asker(&changes[i]); asker != nil {
			asker.note(uint64(h))
			asker.noteStanding(answers[i])
		}
	}
	if h != howOK && h != howDead {
		return nil, errLost
	}
	return answers, nil
}

// asker is who waits for the answer to a change; nil when that one has given up.
func (a *actor) asker(c *store.Change) *actor {
	for _, b := range a.proc.crew {
		if b.status == statusReady && b.op.kind == opWait && b.op.change.If == c.If && b.op.change.To.Token == c.To.Token {
			return b
		}
	}
	return nil
}

// readFor lets those know of an answer who wait for it.
func (a *actor) readFor(id store.ID, answer store.SwapResult) {
	for _, b := range a.proc.crew {
		if b != a && b.op.kind == opWait && b.op.change.To.State == store.Absent && a.w.rows[b.op.row].id == id {
			b.noteStanding(answer)
		}
	}
}

// flushed is what becomes of one of them.
func (a *actor) flushed(c *store.Change, h how) store.SwapResult {
	if h == howDead {
		return afterlife(c.To)
	}
	if h == howLate {
		late := *c
		a.w.post(post{actor: a.w.behind(a, c), change: &late})
	}
	if h != howOK && h != howEaten {
		return store.SwapResult{}
	}
	answer := a.w.asked(a, c)
	if h == howOK {
		a.w.sayStanding(answer, answer.Applied(*c))
	}
	return answer
}

// asked is what becomes of a change that arrives: it is Busy while somebody's open
// transaction holds the record.
func (w *world) asked(a *actor, c *store.Change) store.SwapResult {
	row := w.indexOf(c.To.ID)
	a.proc.busy &^= 1 << row
	if w.writer(row, nil) != nil {
		w.mark(MarkBusy)
		a.proc.busy |= 1 << row
		return store.SwapResult{Busy: true}
	}
	answer := w.swap(w.behind(a, c), c)
	if a.what == recordsLate && answer.Applied(*c) {
		w.mark(MarkUndone)
	}
	return answer
}
