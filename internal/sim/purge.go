package sim

import (
	"context"

	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/store"
)

// purger removes records after their retention.
func purger(ctx context.Context, a *actor) {
	_, _ = admin.Purge(ctx, a.engine, 10)
}

// Purge implements [store.Store]. As stores do, it looks for what to remove, and
// then removes one after the other, if the condition still holds.
func (s *Store) Purge(context.Context, int) (int, error) {
	a, err := s.actor()
	if err != nil {
		return 0, err
	}
	if a.call(op{kind: opPurge}) != resultOK {
		return 0, errLost
	}
	var found []int
	for i := range a.w.rows {
		if a.w.rows[i].purgeable {
			found = append(found, i)
			a.note(uint64(i))
		}
	}
	gone := 0
	for _, i := range found {
		removed, err := a.remove(i)
		if err != nil {
			return gone, err
		}
		gone += removed
	}
	return gone, nil
}

// remove removes a record that is past its retention, if it still is.
func (a *actor) remove(i int) (int, error) {
	w, r := a.w, &a.w.rows[i]
	h := a.call(op{kind: opPurge, row: i})
	removed := 0
	if (h == resultOK || h == resultReplyLost) && r.purgeable {
		w.checkPurge(a, r)
		w.purge(r)
		removed = 1
	}
	if h != resultOK {
		return 0, errLost
	}
	a.note(uint64(removed))
	w.logf("%d removed", removed)
	return removed, nil
}

// checkPurge checks a purge of a record.
func (w *world) checkPurge(a *actor, r *row) {
	if !r.retentionOver || r.rec.State.Unfinished() || r.rec.State == store.Absent {
		w.fail("I6p", "%s removes %s", a.name, w.token(r.rec.Token))
	}
	if !r.rec.State.Final() && w.enqueued(w.indexOf(r.id)) {
		w.fail("I13", "%s removes %s, which was enqueued and is not done", a.name, w.token(r.rec.Token))
	}
	w.mark(MarkPurged)
}

// enqueued reports whether an actor received the response that this record was
// enqueued.
func (w *world) enqueued(row int) bool {
	for _, a := range w.actors {
		if a.response.kind == responseQueued && a.response.of.row == row && a.response.epoch == w.rows[row].epoch {
			return true
		}
	}
	return w.stage.plan.Queued && w.rows[row].epoch == 0
}
