package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// queueChecks test stores that dequeue waiting records.
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
		{"Repeated", queueRepeated},
		{"RepeatedAfterEnd", queueRepeatedAfterEnd},
		{"Reread", queueReread},
		{"RereadAfterEnd", queueRereadAfterEnd},
	}
}

// lacksDequeue returns why the store has no queue.
func (r *harness) lacksDequeue() string {
	if _, ok := r.store.(store.Dequeuer); !ok {
		return "the store is no store.Dequeuer"
	}
	return ""
}

// dequeueOf requests at most limit of the harness's records, for a new owner.
func dequeueOf(limit int) store.Dequeue {
	return store.Dequeue{Operation: "storetest", Limit: limit, Owner: token(store.InProgress, 0).Owner, Lease: farAhead}
}

// createPending creates a waiting record, as an enqueue does.
func (r *harness) createPending(priority int8, due time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Token, rec.Priority, rec.Due, rec.Input = token(store.Pending, 0), priority, due, []byte("input")
	r.mustApply(store.Change{To: rec})
	return rec
}

func (r *harness) dequeue(d store.Dequeue) []store.Record {
	r.Helper()
	records, err := r.store.(store.Dequeuer).Dequeue(r.ctx, d)
	check.Require(r, err, "Dequeue(%+v)", d)
	return records
}

// mustDequeue dequeues and requires these records in this order, each as a Swap of
// d's claim would leave it.
func (r *harness) mustDequeue(d store.Dequeue, want ...store.Record) {
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
			r.Errorf("Dequeue(%+v) returns %s, and %s is current", d, showToken(got[i].Token), showToken(token))
		}
	}
}

// claimed is the record after d has claimed rec.
func claimed(d store.Dequeue, rec store.Record) store.Record {
	to := d.Claim(rec).To
	to.Input, to.Outcome = rec.Input, rec.Outcome
	return to
}

// Records of a higher priority come first, however long others have been due.
func queuePriority(r *harness) {
	var want []store.Record
	for priority := int8(store.MinPriority); priority <= store.MaxPriority; priority++ {
		want = append([]store.Record{r.createPending(priority, time.Duration(priority)*time.Second-time.Minute)}, want...)
	}
	r.mustDequeue(dequeueOf(4), want[:4]...)
}

// Within a priority, the records that have been due for the longest time come
// first.
func queueOldestFirst(r *harness) {
	var all []store.Record
	for _, due := range []time.Duration{-5, -1, -4, -2, -3} {
		all = append(all, r.createPending(0, due*time.Minute))
	}
	r.mustDequeue(dequeueOf(3), all[0], all[2], all[4])
}

// A record of any priority that is not due stays until it is; a rescheduled record
// is not due.
func queueNotDue(r *harness) {
	r.createPending(store.MaxPriority, farAhead)
	now := r.createPending(store.MinPriority, 0)
	r.mustDequeue(dequeueOf(10), now)

	soon, off := r.createPending(0, r.shortTime()), r.createPending(0, 0)
	later := move(off, token(store.Pending, 0))
	later.To.Due = farAhead
	r.mustApply(later)
	r.passTime(soon.ID, isDue)
	r.mustDequeue(dequeueOf(10), soon)
	r.mustDequeue(dequeueOf(10))
}

// Operations are compared by all of their bytes.
func queueOperations(r *harness) {
	names := []string{"operation", "Operation", "operation ", "operation\x00", "operatio", "\xff"}
	recs := make([]store.Record, len(names))
	for i, name := range names {
		recs[i] = identity(name, "scope", "key")
		recs[i].Token, recs[i].Priority = token(store.Pending, 0), int8(i%3)
		r.mustApply(store.Change{To: recs[i]})
	}
	for i, name := range names {
		d := dequeueOf(10)
		d.Operation = name
		r.mustDequeue(d, recs[i])
	}
	d := dequeueOf(10)
	d.Operation = ""
	r.mustDequeue(d)
}

// Records that neither wait nor run are not dequeued.
func queueStates(r *harness) {
	for _, state := range []store.State{store.InDoubt, store.Succeeded, store.Failed} {
		rec := r.fresh()
		rec.Due = -time.Minute
		r.mustApply(create(rec, state))
	}
	r.mustDequeue(dequeueOf(10))
	for _, rec := range r.scan(store.Query{}) {
		if rec.Attempt != 1 {
			r.Errorf("%s is current, want the first attempt", showToken(rec.Token))
		}
	}
}

// Only the returned records are claimed.
func queueLimit(r *harness) {
	var all []store.Record
	for i := range 5 {
		all = append(all, r.createPending(int8(-i), 0))
	}
	r.mustDequeue(dequeueOf(2), all[:2]...)
	for _, rec := range all[2:] {
		r.mustHoldRecord(rec)
	}
	r.mustDequeue(dequeueOf(2), all[2:4]...)
	r.mustDequeue(dequeueOf(2), all[4])
	r.mustDequeue(dequeueOf(2))
}

// An invalid Limit is rejected by its name, and nothing is claimed.
func queueLimits(r *harness) {
	rec := r.createPending(0, 0)
	for _, limit := range []int{-1, 0, r.caps.MaxBatch + 1} {
		got, err := r.store.(store.Dequeuer).Dequeue(r.ctx, dequeueOf(limit))
		if err == nil || !strings.Contains(err.Error(), "limit") || len(got) > 0 {
			r.Errorf("Dequeue with Limit %d = %d records, %v, want an error that names it", limit, len(got), err)
		}
	}
	r.mustHoldRecord(rec)
	r.mustDequeue(dequeueOf(r.caps.MaxBatch), rec)
}
