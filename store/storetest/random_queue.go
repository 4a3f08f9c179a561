package storetest

import (
	"github.com/semelgo/semel/store"
)

// dequeue requests one to three records and compares them with the waiting records
// of the model. Then the model claims the same records. It may repeat an earlier call.
func (h *randomHistory) dequeue() {
	h.Helper()
	if _, ok := h.store.(store.Dequeuer); !ok {
		return
	}
	d := store.Dequeue{Operation: h.operation, Limit: 1 + h.IntN(3), Owner: h.Uint64(), Lease: farAhead}
	if h.IntN(2) == 0 {
		d.Lease = 0 // expires at once
	}
	if len(h.dequeued) > 0 && h.IntN(4) == 0 {
		d.Owner = h.dequeued[h.IntN(len(h.dequeued))]
	}
	h.dequeued = append(h.dequeued, d.Owner)
	if len(h.claimsOf(d.Owner)) == 0 {
		h.claim(d)
	}
	h.rereads(d)
	d.Reread = true
	h.rereads(d)
}

// claim makes a call that claims records.
func (h *randomHistory) claim(d store.Dequeue) {
	h.Helper()
	got, err := h.store.(store.Dequeuer).Dequeue(h.ctx, d)
	if err != nil {
		h.Errorf("Dequeue: %v", err)
		return
	}
	waiting := h.model.waiting()
	want := waiting[:min(d.Limit, len(waiting))]
	if len(got) != len(want) {
		h.Errorf("Dequeue(%+v) gives %d records, want %d", d, len(got), len(want))
		return
	}
	for i, rec := range got {
		current := h.model[rec.ID]
		if !current.due || current.State != store.Pending || current.Priority != want[i].Priority || current.Due != want[i].Due {
			h.Errorf("Dequeue(%+v) gives %s of priority %d, due %v, in place %d, want one of priority %d, due %v", d,
				showToken(current.Token), current.Priority, current.Due, i+1, want[i].Priority, want[i].Due)
			return
		}
		h.seen["handed out"]++
		claim := d.Claim(current.Record)
		h.sent = append(h.sent, claim)
		h.model.swap(claim)
		h.compareRecords("Dequeue gives", rec, h.model[rec.ID].Record)
	}
}

// rereads makes a call that returns the current claims of d's Owner and claims nothing.
func (h *randomHistory) rereads(d store.Dequeue) {
	h.Helper()
	again, err := h.store.(store.Dequeuer).Dequeue(h.ctx, d)
	want := h.claimsOf(d.Owner)
	if err != nil || !sameIDs(idsOf(again), want) {
		h.Errorf("Dequeue(%+v) gives %v, %v, want the claims of its Owner, %v", d, idsOf(again), err, want)
		return
	}
	for _, rec := range again {
		h.compareRecords("a repeated Dequeue gives", rec, h.model[rec.ID].Record)
	}
}

// claimsOf returns the running records of an owner.
func (h *randomHistory) claimsOf(owner uint64) []store.ID {
	return h.model.ids(func(s modelRecord) bool { return s.State == store.InProgress && s.Owner == owner })
}
