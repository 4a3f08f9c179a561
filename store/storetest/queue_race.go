package storetest

import (
	"sync"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// queueRaceChecks are about many concurrent callers.
func queueRaceChecks() []storeCheck {
	return []storeCheck{
		{"Once", raceDequeue},
		{"AgainstSwap", raceDequeueAgainstSwap},
		{"SameOwner", raceDequeueOfOneOwner},
	}
}

// claimLog holds the records that concurrent callers have dequeued.
type claimLog struct {
	mu     sync.Mutex
	tokens map[store.ID][]store.Token // guarded by mu
}

func (t *claimLog) add(records ...store.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == nil {
		t.tokens = make(map[store.ID][]store.Token)
	}
	for _, rec := range records {
		t.tokens[rec.ID] = append(t.tokens[rec.ID], rec.Token)
	}
}

// dequeueAll dequeues until no record is left.
func (r *harness) dequeueAll(t *claimLog, limit int) {
	for {
		got, err := r.store.(store.Dequeuer).Dequeue(r.ctx, dequeueOf(limit))
		if err != nil {
			r.Errorf("Dequeue: %v", err)
			return
		}
		if len(got) == 0 {
			return
		}
		t.add(got...)
	}
}

// With any number of concurrent callers, each record is dequeued once, and none is
// left.
func raceDequeue(r *harness) {
	for _, askers := range []int{2, 16} {
		all := make([]store.Record, 96)
		for i := range all {
			all[i] = r.createPending(int8(i%3), 0)
		}
		var t claimLog
		r.concurrently(askers, func(int) { r.dequeueAll(&t, 5) })
		r.dequeueAll(&t, 100)
		for _, rec := range all {
			got := t.tokens[rec.ID]
			if len(got) != 1 || r.mustRead(rec.ID).Token != got[0] {
				r.Errorf("of %d at once, %d dequeued a record, %s is current, want one", askers, len(got), showToken(r.mustRead(rec.ID).Token))
			}
		}
	}
}

// A record is dequeued, or another caller has changed it: claimed it for a direct
// call, rescheduled it, or cancelled it.
func raceDequeueAgainstSwap(r *harness) {
	for _, state := range []store.State{store.InProgress, store.Pending, store.Failed} {
		changes := make([]store.Change, 48)
		for i := range changes {
			changes[i] = move(r.createPending(0, 0), token(state, 1))
			changes[i].IfDue, changes[i].To.Due = true, farAhead
		}
		var t claimLog
		r.concurrently(8, func(asker int) {
			if asker%2 == 0 {
				r.dequeueAll(&t, 4)
				return
			}
			for i := asker / 2; i < len(changes); i += 4 {
				answers, err := swapAll(r.ctx, r.store, changes[i:i+1])
				if err != nil {
					r.Errorf("Swap: %v", err)
					return
				}
				if answers[0].Applied(changes[i]) {
					t.add(changes[i].To)
				}
			}
		})
		r.dequeueAll(&t, 100)
		for _, c := range changes {
			got := t.tokens[c.To.ID]
			if len(got) != 1 || r.mustRead(c.To.ID).Token != got[0] {
				r.Errorf("%d claimed a record, %s is current, want one", len(got), showToken(r.mustRead(c.To.ID).Token))
			}
		}
	}
}

// Concurrent calls with the same Owner claim as one call. Each returns these claims, or
// none.
func raceDequeueOfOneOwner(r *harness) {
	for range 8 {
		for range 8 {
			r.createPending(0, 0)
		}
		d := dequeueOf(2)
		answers := make([][]store.Record, 8)
		r.concurrently(len(answers), func(i int) {
			var err error
			if answers[i], err = r.store.(store.Dequeuer).Dequeue(r.ctx, d); err != nil {
				r.Errorf("Dequeue: %v", err)
			}
		})
		d.Reread = true
		claims := idsOf(r.dequeue(d))
		check.Equal(r, len(claims), d.Limit, "concurrent calls with one Owner claim: records")
		for i, got := range answers {
			if len(got) > 0 && !sameIDs(idsOf(got), claims) {
				r.Errorf("call %d returns %v, want the claims %v, or none", i, idsOf(got), claims)
			}
		}
	}
}
