package sim

import (
	"context"

	"github.com/semelgo/semel/store"
)

// queueStore is a [Store] that hands out what waits.
type queueStore struct{ *Store }

var _ store.Dequeuer = queueStore{}

// offers is the store as the plan says that it is.
func (s *stage) offers(p *process) store.TxStore[*Tx] {
	switch {
	case s.plan.Joinable:
		return joinableStore{p.store}
	case s.plan.Workers == 0 || s.plan.NoDequeue:
		return p.store
	default:
		return queueStore{p.store}
	}
}

// Dequeue implements [store.Dequeuer].
func (s queueStore) Dequeue(_ context.Context, d store.Dequeue) ([]store.Record, error) {
	a, err := s.actor()
	if err != nil {
		return nil, err
	}
	asked := op{kind: opDequeue, again: d.Reread}
	asked.change.To.Owner = d.Owner
	h := a.call(asked)
	if h == resultLate {
		a.w.lateRequest(lateRequest{actor: a.index, take: &d})
	}
	var claimed []*row
	if h == resultOK || h == resultReplyLost {
		claimed = a.w.dequeue(a.index, d)
	}
	if h != resultOK {
		return nil, errLost
	}
	records := make([]store.Record, len(claimed))
	for i, r := range claimed {
		records[i] = *r.read()
		a.noteResult(r.current())
	}
	a.note(uint64(len(claimed)))
	a.w.logf("%d claimed", len(claimed))
	return records, nil
}

// dequeue returns the claims of d's Owner, or claims what waits and is due, in one
// step. Priorities and how long something has been due are not modelled.
func (w *world) dequeue(actor int, d store.Dequeue) []*row {
	var claimed []*row
	for i := range w.stage.scopes {
		if r := &w.rows[i]; r.rec.State == store.InProgress && r.rec.Owner == d.Owner {
			claimed = append(claimed, r)
		}
	}
	if d.Reread || len(claimed) > 0 {
		return claimed
	}
	for i := range w.stage.scopes {
		r := &w.rows[i]
		if r.rec.State == store.Pending && r.due && w.writer(i, nil) == nil && len(claimed) < d.Limit {
			c := d.Claim(r.rec)
			w.write(actor, r, &c)
			claimed = append(claimed, r)
		}
	}
	return claimed
}
