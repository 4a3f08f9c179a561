package semeltest

import (
	"sync"

	"github.com/semelgo/semel/store"
)

// queueRaceChecks are about many concurrent callers.
func queueRaceChecks() []storeCheck {
	return []storeCheck{
		{"Once", raceDequeue},
		{"AgainstSwap", raceDequeueAgainstSwap},
	}
}

// takers are the records that were given to askers at once.
type takers struct {
	mu  sync.Mutex
	got map[store.ID][]store.Token // guarded by mu
}

func (t *takers) take(records ...store.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.got == nil {
		t.got = make(map[store.ID][]store.Token)
	}
	for _, rec := range records {
		t.got[rec.ID] = append(t.got[rec.ID], rec.Token)
	}
}

// drain asks until there is nothing more.
func (r *rig) drain(t *takers, limit int) {
	for {
		got, err := r.store.(store.Dequeuer).Dequeue(r.ctx, asking(limit))
		if err != nil {
			r.Errorf("Dequeue: %v", err)
			return
		}
		if len(got) == 0 {
			return
		}
		t.take(got...)
	}
}

// However many ask at once, each record is given to one, and none is left.
func raceDequeue(r *rig) {
	for _, askers := range []int{2, 16} {
		all := make([]store.Record, 96)
		for i := range all {
			all[i] = r.waiting(int8(i%3), 0)
		}
		var t takers
		together(askers, func(int) { r.drain(&t, 5) })
		r.drain(&t, 100)
		for _, rec := range all {
			got := t.got[rec.ID]
			if len(got) != 1 || r.mustRead(rec.ID).Token != got[0] {
				r.Errorf("of %d at once, %d are given a record of which %s stands, want one", askers, len(got), showToken(r.mustRead(rec.ID).Token))
			}
		}
	}
}

// A record is dequeued, or another caller has changed it: claimed it for a direct
// call, rescheduled it, or cancelled it.
func raceDequeueAgainstSwap(r *rig) {
	for _, state := range []store.State{store.InProgress, store.Pending, store.Failed} {
		changes := make([]store.Change, 48)
		for i := range changes {
			changes[i] = move(r.waiting(0, 0), token(state, 1))
			changes[i].IfDue, changes[i].To.Due = true, long
		}
		var t takers
		together(8, func(asker int) {
			if asker%2 == 0 {
				r.drain(&t, 4)
				return
			}
			for i := asker / 2; i < len(changes); i += 4 {
				answers, err := swapAll(r.ctx, r.store, changes[i:i+1])
				if err != nil {
					r.Errorf("Swap: %v", err)
					return
				}
				if answers[0].Applied(changes[i]) {
					t.take(changes[i].To)
				}
			}
		})
		r.drain(&t, 100)
		for _, c := range changes {
			got := t.got[c.To.ID]
			if len(got) != 1 || r.mustRead(c.To.ID).Token != got[0] {
				r.Errorf("%d have a record of which %s stands, want one", len(got), showToken(r.mustRead(c.To.ID).Token))
			}
		}
	}
}
