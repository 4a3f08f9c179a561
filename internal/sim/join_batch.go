package sim

import (
	"context"
	"slices"

	"github.com/semelgo/semel/store"
)

// joinableStore is a [Store] with joinable batches.
type joinableStore struct{ *Store }

var _ store.BatchJoiner = joinableStore{}

// Self implements [store.BatchJoiner].
func (s joinableStore) Self() store.Store { return s }

// joinableBatch is a transaction that changes join until its commit.
type joinableBatch struct {
	a       *actor
	tx      *session
	first   int            // number of changes that did not join
	changes []store.Change // of those so far
	answers []store.SwapResult
}

// SwapJoinable implements [store.BatchJoiner]. The actor stops before it writes
// the first changes, before it writes joined changes, and before the commit.
// Changes that arrive before the last write join; later ones do not.
func (s joinableStore) SwapJoinable(_ context.Context, changes []store.Change, more func() []store.Change) ([]store.SwapResult, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	g := &joinableBatch{a: a, first: len(changes), tx: a.w.open(a, a.w.indexOf(changes[0].To.ID), false)}
	for came := changes; len(came) > 0; came = more() {
		if h := g.write(came); h != resultOK {
			return g.end(h)
		}
	}
	g.tx.commits = g.tx.holds()
	h := a.call(op{kind: opCommitBatch, row: g.tx.row, batch: g.changes, session: g.tx})
	if h == resultOK || h == resultAborted {
		a.w.markMissed(a)
	}
	return g.end(h)
}

// write writes changes in the transaction, which holds their records until it
// ends.
func (g *joinableBatch) write(came []store.Change) callResult {
	w := g.a.w
	g.changes = append(g.changes, came...)
	if err := store.CheckBatch(g.changes, maxBatch); err != nil {
		w.fail("batch", "%s sends changes that every store refuses: %v", g.a.name, err)
	}
	h := g.a.call(op{kind: opWriteBatch, row: w.indexOf(came[0].To.ID), batch: slices.Clone(g.changes)})
	if h != resultOK {
		return h
	}
	if len(g.changes) > g.first {
		w.mark(MarkJoined)
	}
	for i := range came {
		answer := w.writes(g.tx, &came[i])
		g.answers = append(g.answers, answer)
		g.a.noteResult(answer)
		w.logResult(answer, answer.Applied(came[i]))
	}
	return resultOK
}

// writes returns the result of a change within a transaction.
func (w *world) writes(tx *session, c *store.Change) store.SwapResult {
	row := w.indexOf(c.To.ID)
	switch {
	case w.writer(row, tx) != nil:
		return store.SwapResult{Busy: true}
	case w.rows[row].mayChange(c):
		tx.writes = append(tx.writes, *c)
		return store.SwapResult{Token: c.To.Token}
	case w.rows[row].rec.Token == c.To.Token:
		w.mark(MarkAlreadyApplied)
		return store.SwapResult{Token: c.To.Token}
	default:
		return w.rows[row].current()
	}
}

// isWritten reports whether a change is in a joinable transaction that has not
// ended.
func (w *world) isWritten(c *store.Change) bool {
	return slices.ContainsFunc(w.sessions, func(s *session) bool {
		return s.change == nil && s.commits && slices.ContainsFunc(s.writes, func(d store.Change) bool {
			return d.If == c.If && d.To.Token == c.To.Token
		})
	})
}

// end ends the transaction and notifies the waiting callers.
func (g *joinableBatch) end(h callResult) ([]store.SwapResult, error) {
	w := g.a.w
	switch h { //nolint:exhaustive // every other result rolls back
	case resultDead, resultUnknown:
		if g.tx.orphan = g.tx.holds(); !g.tx.orphan {
			w.close(g.tx)
		}
	case resultOK:
		w.commit(g.tx)
		w.logf("committed")
	default:
		w.close(g.tx)
	}
	if h == resultDead {
		return g.ghostResults(), nil
	}
	if h == resultAborted { // a store with a single writer may report the whole batch as Busy
		w.mark(MarkAborted)
		for i := range g.answers {
			g.answers[i] = store.SwapResult{Busy: true}
		}
	}
	answered := h == resultOK || h == resultAborted
	if !answered && len(g.changes) > g.first {
		w.mark(MarkJoinedLost)
	}
	g.notify(h, answered)
	if !answered {
		return nil, errLost
	}
	return g.answers, nil
}

// ghostResults returns the results that a ghost receives.
func (g *joinableBatch) ghostResults() []store.SwapResult {
	answers := make([]store.SwapResult, len(g.changes))
	for i := range g.changes {
		answers[i] = ghostResult(g.changes[i].To)
	}
	return answers
}

// notify adds the results, or the lost reply, to the histories of the waiting
// callers.
func (g *joinableBatch) notify(h callResult, answered bool) {
	p := g.a.proc
	for i := range g.changes {
		waiterOf := g.a.waiterOf(&g.changes[i])
		if waiterOf != nil {
			waiterOf.note(uint64(h))
		}
		if i >= g.first && isClaim(&g.changes[i]) && (waiterOf == nil || waiterOf.isHelper()) {
			g.a.w.mark(MarkJoinedCanceled)
		}
		if !answered {
			continue
		}
		row := g.a.w.indexOf(g.changes[i].To.ID)
		if p.busy &^= 1 << row; g.answers[i].Busy {
			p.busy |= 1 << row
			g.a.w.mark(MarkBusy)
		}
		if waiterOf != nil {
			waiterOf.noteResult(g.answers[i])
		}
	}
}

// markMissed marks waiting changes that arrived too late to join.
func (w *world) markMissed(a *actor) {
	for _, b := range a.proc.members {
		if b.op.kind == opWait && !b.op.settled() && !slices.ContainsFunc(a.op.batch, func(c store.Change) bool {
			return c.To.ID == b.op.change.To.ID
		}) {
			w.mark(MarkJoinedTooLate)
		}
	}
}
