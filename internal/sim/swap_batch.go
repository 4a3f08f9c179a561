package sim

import "github.com/semelgo/semel/store"

// flush sends the changes of several callers in one step: all of it is executed
// or nothing, and all results come together.
func (a *actor) flush(changes []store.Change) ([]store.SwapResult, error) {
	w := a.w
	if err := store.CheckBatch(changes, maxBatch); err != nil {
		w.fail("batch", "%s sends changes that every store refuses: %v", a.name, err)
	}
	h := a.call(op{kind: opSwap, row: w.indexOf(changes[0].To.ID), batch: changes})
	if len(changes) > 1 && h == resultOK {
		w.mark(MarkBatched)
	}
	answers := make([]store.SwapResult, len(changes))
	for i := range changes {
		answers[i] = a.flushed(&changes[i], h)
		if waiterOf := a.waiterOf(&changes[i]); waiterOf != nil {
			waiterOf.note(uint64(h))
			waiterOf.noteResult(answers[i])
		}
	}
	if h != resultOK && h != resultDead {
		return nil, errLost
	}
	return answers, nil
}

// waiterOf returns the actor that waits for the result of a change, or nil if
// it has canceled.
func (a *actor) waiterOf(c *store.Change) *actor {
	for _, b := range a.proc.members {
		if b.status == statusReady && b.op.kind == opWait && b.op.change.If == c.If && b.op.change.To.Token == c.To.Token {
			return b
		}
	}
	return nil
}

// readFor adds a result to the histories of the actors that wait for it.
func (a *actor) readFor(id store.ID, answer store.SwapResult) {
	for _, b := range a.proc.members {
		if b != a && b.op.kind == opWait && b.op.change.To.State == store.Absent && a.w.rows[b.op.row].id == id {
			b.noteResult(answer)
		}
	}
}

// flushed returns the result of one change of a batch.
func (a *actor) flushed(c *store.Change, h callResult) store.SwapResult {
	if h == resultDead {
		return ghostResult(c.To)
	}
	if h == resultLate {
		late := *c
		a.w.lateRequest(lateRequest{actor: a.w.requester(a, c), change: &late})
	}
	if h != resultOK && h != resultReplyLost {
		return store.SwapResult{}
	}
	answer := a.w.applySwap(a, c)
	if h == resultOK {
		a.w.logResult(answer, answer.Applied(*c))
	}
	return answer
}

// applySwap executes a change. It is Busy while an open transaction of another
// actor holds the record.
func (w *world) applySwap(a *actor, c *store.Change) store.SwapResult {
	row := w.indexOf(c.To.ID)
	a.proc.busy &^= 1 << row
	if w.writer(row, nil) != nil {
		w.mark(MarkBusy)
		a.proc.busy |= 1 << row
		return store.SwapResult{Busy: true}
	}
	answer := w.swap(w.requester(a, c), c)
	if a.task == taskRecordLate && answer.Applied(*c) {
		w.mark(MarkClaimUndone)
	}
	return answer
}
