package storetest

import (
	"github.com/semelgo/semel/store"
)

// dequeue requests one to three records and compares them with the waiting records
// of the model. Then the model claims the same records.
func (h *randomHistory) dequeue() {
	h.Helper()
	dequeuer, ok := h.store.(store.Dequeuer)
	if !ok {
		return
	}
	h.owners++
	d := store.Dequeue{Operation: h.operation, Limit: 1 + h.IntN(3), Owner: h.owners, Lease: farAhead}
	if h.IntN(2) == 0 {
		d.Lease = 0 // expires at once
	}
	got, err := dequeuer.Dequeue(h.ctx, d)
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
		stood := h.model[rec.ID]
		if !stood.due || stood.State != store.Pending || stood.Priority != want[i].Priority || stood.Due != want[i].Due {
			h.Errorf("Dequeue(%+v) gives %s of priority %d, due %v, in place %d, want one of priority %d, due %v", d,
				showToken(stood.Token), stood.Priority, stood.Due, i+1, want[i].Priority, want[i].Due)
			return
		}
		h.seen["handed out"]++
		claim := d.Claim(stood.Record)
		h.sent = append(h.sent, claim)
		h.model.swap(claim)
		h.compareRecords("Dequeue gives", rec, h.model[rec.ID].Record)
	}
	d.Reread = true
	again, err := dequeuer.Dequeue(h.ctx, d)
	if err != nil || len(again) != len(got) {
		h.Errorf("Dequeue(%+v) gives %d records, %v, want the same %d again", d, len(again), err, len(got))
	}
}
