package semeltest

import (
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel/store"
)

// queueChecks are for stores that hand out waiting records.
func queueChecks() []storeCheck {
	return []storeCheck{
		{"Priority", queuePriority},
		{"OldestFirst", queueOldestFirst},
		{"NotDue", queueNotDue},
		{"Operations", queueOperations},
		{"States", queueStates},
		{"Limit", queueLimit},
		{"Limits", queueLimits},
		{"Fields", queueFields},
		{"Expire", queueExpire},
		{"Lease", queueLease},
		{"OldToken", queueOldToken},
		{"Zombie", queueZombie},
		{"Again", queueAgain},
		{"AgainEnded", queueAgainEnded},
	}
}

// handsOut says why a subject has no queue.
func handsOut[Tx any](s Subject[Tx]) string {
	if _, ok := s.Store.(store.Dequeuer); !ok {
		return "the store is no store.Dequeuer"
	}
	return ""
}

// asking asks for at most limit of the rig's records, by a new owner.
func asking(limit int) store.Dequeue {
	return store.Dequeue{Operation: "semeltest", Limit: limit, Owner: token(store.InProgress, 0).Owner, Lease: long}
}

// waiting lets a fresh record wait, as one that was enqueued does.
func (r *rig) waiting(priority int8, due time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Token, rec.Priority, rec.Due, rec.Input = token(store.Pending, 0), priority, due, []byte("input")
	r.mustForce(store.Change{To: rec})
	return rec
}

func (r *rig) dequeue(d store.Dequeue) []store.Record {
	r.Helper()
	records, err := r.store.(store.Dequeuer).Dequeue(r.ctx, d)
	if err != nil {
		r.Fatalf("Dequeue(%+v): %v", d, err)
	}
	return records
}

// mustDequeue asks, and requires these records in this order, as a Swap of d's
// claims would let them stand.
func (r *rig) mustDequeue(d store.Dequeue, want ...store.Record) {
	r.Helper()
	got := r.dequeue(d)
	if !slices.Equal(idsOf(got), idsOf(want)) {
		r.Fatalf("Dequeue(%+v) gives\n %v\nwant\n %v", d, idsOf(got), idsOf(want))
	}
	for i, rec := range want {
		if diff := diffRecords(got[i], claimed(d, rec)); diff != "" {
			r.Errorf("Dequeue(%+v) gives a record that differs (-want +got):\n%s", d, diff)
		}
		if token := r.mustRead(rec.ID).Token; token != got[i].Token {
			r.Errorf("Dequeue(%+v) gives %s, and %s stands", d, showToken(got[i].Token), showToken(token))
		}
	}
}

// claimed is what stands once d has claimed rec.
func claimed(d store.Dequeue, rec store.Record) store.Record {
	to := d.Claim(rec).To
	to.Input, to.Outcome = rec.Input, rec.Outcome
	return to
}

// Those of a higher priority go first, however long others have been due.
func queuePriority(r *rig) {
	var want []store.Record
	for priority := int8(store.MinPriority); priority <= store.MaxPriority; priority++ {
		want = append([]store.Record{r.waiting(priority, time.Duration(priority)*time.Second-time.Minute)}, want...)
	}
	r.mustDequeue(asking(4), want[:4]...)
}

// Of one priority, those that have been due for longest go first.
func queueOldestFirst(r *rig) {
	var all []store.Record
	for _, due := range []time.Duration{-5, -1, -4, -2, -3} {
		all = append(all, r.waiting(0, due*time.Minute))
	}
	r.mustDequeue(asking(3), all[0], all[2], all[4])
}

// A record of any priority that is not due stays until it is; a rescheduled record
// is not due.
func queueNotDue(r *rig) {
	r.waiting(store.MaxPriority, long)
	now := r.waiting(store.MinPriority, 0)
	r.mustDequeue(asking(10), now)

	soon, off := r.waiting(0, r.soon()), r.waiting(0, 0)
	later := move(off, token(store.Pending, 0))
	later.To.Due = long
	r.mustForce(later)
	r.pass(soon.ID, isDue)
	r.mustDequeue(asking(10), soon)
	r.mustDequeue(asking(10))
}

// Operations are told apart by all of their bytes.
func queueOperations(r *rig) {
	names := []string{"operation", "Operation", "operation ", "operation\x00", "operatio", "\xff"}
	recs := make([]store.Record, len(names))
	for i, name := range names {
		recs[i] = identity(name, "scope", "key")
		recs[i].Token, recs[i].Priority = token(store.Pending, 0), int8(i%3)
		r.mustForce(store.Change{To: recs[i]})
	}
	for i, name := range names {
		d := asking(10)
		d.Operation = name
		r.mustDequeue(d, recs[i])
	}
	d := asking(10)
	d.Operation = ""
	r.mustDequeue(d)
}

// What neither waits nor runs is not handed out.
func queueStates(r *rig) {
	for _, state := range []store.State{store.InDoubt, store.Succeeded, store.Failed} {
		rec := r.fresh()
		rec.Due = -time.Minute
		r.mustForce(create(rec, state))
	}
	r.mustDequeue(asking(10))
	for _, rec := range r.scan(store.Query{}) {
		if rec.Attempt != 1 {
			r.Errorf("%s stands, want the first attempt", showToken(rec.Token))
		}
	}
}

// Only the returned records are claimed.
func queueLimit(r *rig) {
	var all []store.Record
	for i := range 5 {
		all = append(all, r.waiting(int8(-i), 0))
	}
	r.mustDequeue(asking(2), all[:2]...)
	for _, rec := range all[2:] {
		r.mustStand(rec)
	}
	r.mustDequeue(asking(2), all[2:4]...)
	r.mustDequeue(asking(2), all[4])
	r.mustDequeue(asking(2))
}

// A Limit that cannot be is refused by its name, and claims nothing.
func queueLimits(r *rig) {
	rec := r.waiting(0, 0)
	for _, limit := range []int{-1, 0, r.caps.MaxBatch + 1} {
		got, err := r.store.(store.Dequeuer).Dequeue(r.ctx, asking(limit))
		if err == nil || !strings.Contains(err.Error(), "limit") || len(got) > 0 {
			r.Errorf("Dequeue with Limit %d = %d records, %v, want an error that names it", limit, len(got), err)
		}
	}
	r.mustStand(rec)
	r.mustDequeue(asking(r.caps.MaxBatch), rec)
}
