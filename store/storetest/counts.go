package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// countChecks test stores that count their records.
func countChecks() []storeCheck {
	return []storeCheck{
		{"Empty", ifCounter(countEmpty)},
		{"EachState", ifCounter(countEachState)},
		{"Operations", ifCounter(countOperations)},
		{"Overdue", ifCounter(countOverdue)},
		{"Purgeable", ifCounter(countPurgeable)},
		{"DeadLetters", ifCounter(countDeadLetters)},
		{"Oldest", ifCounter(countOldest)},
	}
}

func ifCounter(run func(r *harness, counter store.Counter)) func(*harness) {
	return func(r *harness) {
		counter, ok := r.store.(store.Counter)
		if !ok {
			r.Skip("the store is no store.Counter")
		}
		run(r, counter)
	}
}

// mustCount requires these counts, in this order; their Oldest is not compared.
func (r *harness) mustCount(counter store.Counter, want ...store.Count) {
	r.Helper()
	got, err := counter.Counts(r.ctx)
	check.Require(r, err, "Counts")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Count{}, "Oldest")); diff != "" {
		r.Errorf("Counts differ (-want +got):\n%s", diff)
	}
}

func countEmpty(r *harness, counter store.Counter) { r.mustCount(counter) }

// Records are counted in their current state only.
func countEachState(r *harness, counter store.Counter) {
	var want []store.Count
	for i, state := range store.States() {
		n := i%3 + 1
		for range n {
			r.mustCreateIn(state)
		}
		want = append(want, store.Count{Operation: "storetest", State: state, Records: int64(n)})
	}
	r.mustCount(counter, want...)
	moved := r.mustCreateIn(store.InDoubt)
	r.mustApply(move(moved, token(store.Succeeded, 1)))
	want[3].Records++
	r.mustCount(counter, want...)
}

// Operations are counted separately, in the order of their bytes.
func countOperations(r *harness, counter store.Counter) {
	var want []store.Count
	for _, operation := range []string{"Operation", "operation", "operation 2", "operation\x00", "opération", "\xff"} {
		want = append(want, store.Count{Operation: operation, State: store.Failed, Records: 1})
	}
	want[2], want[3] = want[3], want[2]
	for i := range want {
		r.mustApply(create(identity(want[len(want)-1-i].Operation, "scope", "key"), store.Failed))
	}
	r.mustCount(counter, want...)
}

// Overdue counts the records that a Scan of due records returns.
func countOverdue(r *harness, counter store.Counter) {
	var want []store.Count
	for _, state := range store.States() {
		r.mustCreateIn(state) // due far ahead
		for range 2 {
			rec := r.fresh()
			rec.Due = -time.Second
			r.mustApply(create(rec, state))
		}
		count := store.Count{Operation: "storetest", State: state, Records: 3}
		if state == store.Pending || state == store.InProgress {
			count.Overdue = 2
		}
		want = append(want, count)
	}
	r.mustCount(counter, want...)
}

// Purgeable counts the records that Purge removes, and no others.
func countPurgeable(r *harness, counter store.Counter) {
	var before, after []store.Count
	for _, state := range store.States() {
		r.mustCreateIn(state)
		for _, expire := range []time.Duration{-time.Second, -time.Second, farAhead} {
			rec := r.fresh()
			rec.Due, rec.Expire = farAhead, expire
			r.mustApply(create(rec, state))
		}
		count := store.Count{Operation: "storetest", State: state, Records: 4}
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

// A dead letter is Failed or InDoubt, and the first byte of its outcome says that it is one.
func countDeadLetters(r *harness, counter store.Counter) {
	var want []store.Count
	for _, state := range store.States() {
		for _, outcome := range []string{"", "d", "d{}", "fd"} {
			rec := r.fresh()
			rec.Due, rec.Outcome = farAhead, []byte(outcome)
			r.mustApply(create(rec, state))
		}
		count := store.Count{Operation: "storetest", State: state, Records: 4}
		if state == store.InDoubt || state == store.Failed {
			count.DeadLetters = 2
		}
		want = append(want, count)
	}
	r.mustCount(counter, want...)
}

// Oldest counts from the last change of the token, and belongs to the record that
// has been in the state for the longest time.
func countOldest(r *harness, counter store.Counter) {
	moved, stays := r.mustCreateIn(store.Pending), r.mustCreateIn(store.InProgress)
	r.passTime(stays.ID, r.aged)
	r.mustApply(move(moved, token(store.Succeeded, 1)))
	r.mustCreateIn(store.InProgress)
	counts, err := counter.Counts(r.ctx)
	if err != nil || len(counts) != 2 {
		r.Fatalf("Counts = %d counts, %v, want 2", len(counts), err)
	}
	since := r.mustRead(moved.ID).Since
	if got := counts[0].Oldest; got < r.shortTime() {
		r.Errorf("a record has been %v for %v, and Oldest is %v", counts[0].State, r.shortTime(), got)
	}
	if got := counts[1].Oldest; got < 0 || got > since+time.Millisecond {
		r.Errorf("the only record became %v %v ago, and Oldest is %v", counts[1].State, since, got)
	}
}
