package semeltest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/store"
)

// countChecks are for stores that count their records.
func countChecks() []storeCheck {
	return []storeCheck{
		{"Empty", ifCounter(countEmpty)},
		{"EachState", ifCounter(countEachState)},
		{"Operations", ifCounter(countOperations)},
		{"Overdue", ifCounter(countOverdue)},
		{"Purgeable", ifCounter(countPurgeable)},
		{"Oldest", ifCounter(countOldest)},
	}
}

func ifCounter(run func(r *rig, counter store.Counter)) func(*rig) {
	return func(r *rig) {
		counter, ok := r.store.(store.Counter)
		if !ok {
			r.Skip("the store is no store.Counter")
		}
		run(r, counter)
	}
}

// mustCount requires these counts, in this order; their Oldest is not compared.
func (r *rig) mustCount(counter store.Counter, want ...store.Count) {
	r.Helper()
	got, err := counter.Counts(r.ctx)
	if err != nil {
		r.Fatalf("Counts: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Count{}, "Oldest")); diff != "" {
		r.Errorf("Counts differ (-want +got):\n%s", diff)
	}
}

func countEmpty(r *rig, counter store.Counter) { r.mustCount(counter) }

// Records are counted in the state they stand in, and not where they stood.
func countEachState(r *rig, counter store.Counter) {
	var want []store.Count
	for i, state := range store.States() {
		n := i%3 + 1
		for range n {
			r.stand(state)
		}
		want = append(want, store.Count{Operation: "semeltest", State: state, Records: int64(n)})
	}
	r.mustCount(counter, want...)
	moved := r.stand(store.InDoubt)
	r.mustForce(move(moved, token(store.Succeeded, 1)))
	want[3].Records++
	r.mustCount(counter, want...)
}

// Operations are kept apart, and come in the order of their bytes.
func countOperations(r *rig, counter store.Counter) {
	var want []store.Count
	for _, operation := range []string{"Operation", "operation", "operation 2", "operation\x00", "opération", "\xff"} {
		want = append(want, store.Count{Operation: operation, State: store.Failed, Records: 1})
	}
	want[2], want[3] = want[3], want[2]
	for i := range want {
		r.mustForce(create(identity(want[len(want)-1-i].Operation, "scope", "key"), store.Failed))
	}
	r.mustCount(counter, want...)
}

// Overdue are those that a Scan of due records gives.
func countOverdue(r *rig, counter store.Counter) {
	var want []store.Count
	for _, state := range store.States() {
		r.stand(state) // not due for long
		for range 2 {
			rec := r.fresh()
			rec.Due = -time.Second
			r.mustForce(create(rec, state))
		}
		count := store.Count{Operation: "semeltest", State: state, Records: 3}
		if state == store.Pending || state == store.InProgress {
			count.Overdue = 2
		}
		want = append(want, count)
	}
	r.mustCount(counter, want...)
}

// Purgeable are those that Purge removes, and no others.
func countPurgeable(r *rig, counter store.Counter) {
	var before, after []store.Count
	for _, state := range store.States() {
		r.stand(state)
		for _, expire := range []time.Duration{-time.Second, -time.Second, long} {
			rec := r.fresh()
			rec.Due, rec.Expire = long, expire
			r.mustForce(create(rec, state))
		}
		count := store.Count{Operation: "semeltest", State: state, Records: 4}
		left := count
		if !state.Unfinished() {
			count.Purgeable, left.Records = 2, 2
		}
		before, after = append(before, count), append(after, left)
	}
	r.mustCount(counter, before...)
	r.mustPurge(100, 6)
	r.mustCount(counter, after...)
}

// Oldest counts from the last change of the token, and is that of the record
// that has been in the state for longest.
func countOldest(r *rig, counter store.Counter) {
	moved, stays := r.stand(store.Pending), r.stand(store.InProgress)
	r.pass(stays.ID, r.aged)
	r.mustForce(move(moved, token(store.Succeeded, 1)))
	r.stand(store.InProgress)
	counts, err := counter.Counts(r.ctx)
	if err != nil || len(counts) != 2 {
		r.Fatalf("Counts = %d counts, %v, want 2", len(counts), err)
	}
	since := r.mustRead(moved.ID).Since
	if got := counts[0].Oldest; got < r.soon() {
		r.Errorf("a record has been %v for %v, and Oldest is %v", counts[0].State, r.soon(), got)
	}
	if got := counts[1].Oldest; got < 0 || got > since+time.Millisecond {
		r.Errorf("the only record became %v %v ago, and Oldest is %v", counts[1].State, since, got)
	}
}
