package storetest

import (
	"slices"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func batchChecks() []storeCheck {
	return []storeCheck{
		{"Order", batchOrder},
		{"Independent", batchIndependent},
		{"InvalidChange", batchWithInvalidChange},
		{"DuplicateIDs", duplicateIDs},
		{"TooManyBytes", tooManyBytes},
		{"TooMany", tooManyChanges},
		{"Empty", emptyBatch},
		{"Largest", largestBatch},
	}
}

// inBothOrders calls try with records in the order of their IDs, and in the reverse
// order.
func (r *harness) inBothOrders(n int, try func(recs []store.Record)) {
	for _, backwards := range []bool{false, true} {
		recs := make([]store.Record, n)
		for i := range recs {
			recs[i] = r.fresh()
		}
		slices.SortFunc(recs, func(a, b store.Record) int { return compareIDs(a.ID, b.ID) })
		if backwards {
			slices.Reverse(recs)
		}
		try(recs)
	}
}

func compareIDs(a, b store.ID) int { return slices.Compare(a[:], b[:]) }

// Results are in the order of the changes, for every kind of result.
func batchOrder(r *harness) {
	r.inBothOrders(12, func(recs []store.Record) {
		stand := make([]store.Change, len(recs))
		for i, rec := range recs {
			stand[i] = create(rec, store.InProgress)
		}
		for i, answer := range r.swap(stand...) {
			if !answer.Applied(stand[i]) {
				r.Fatalf("create %d = %s, want applied", i, showAnswer(answer))
			}
		}
		finish := make([]store.Change, len(recs))
		for i := range finish {
			finish[i] = move(stand[i].To, token(store.Succeeded, 1))
			if i%3 == 0 {
				finish[i] = stale(stand[i].To, store.Succeeded)
			}
		}
		for i, answer := range r.swap(finish...) {
			if i%3 == 0 {
				r.checkRejected(finish[i], answer, stand[i].To.Token)
			} else if !answer.Applied(finish[i]) {
				r.Fatalf("finish %d = %s, want applied", i, showAnswer(answer))
			}
		}
	})
}

// The result of one change does not affect the others.
func batchIndependent(r *harness) {
	taken, running := r.mustCreateIn(store.Succeeded), r.mustCreateIn(store.InProgress)
	absent := r.fresh()
	absent.Token = token(store.InProgress, 1)
	changes := []store.Change{
		create(r.fresh(), store.InProgress),
		move(running, token(store.Succeeded, 1)),
		stale(taken, store.Failed),
		move(absent, token(store.Succeeded, 1)),
	}
	answers := r.swap(changes...)
	for i := range 2 {
		if !answers[i].Applied(changes[i]) {
			r.Errorf("%s beside refused ones = %s, want applied", show(changes[i]), showAnswer(answers[i]))
		}
	}
	r.checkRejected(changes[2], answers[2], taken.Token)
	r.checkRejected(changes[3], answers[3], store.Token{})
}

func emptyBatch(r *harness) {
	check.Equal(r, len(r.swap()), 0, "Swap of nothing gives: answers")
	answers, err := r.store.Get(r.ctx, nil)
	check.Result(len(answers), err)(r, 0, "Get of nothing")
}

// A batch of the largest size that the store reports is accepted.
func largestBatch(r *harness) {
	if r.caps.MaxBatch < 1 {
		r.Fatalf("Capabilities.MaxBatch = %d, want at least 1", r.caps.MaxBatch)
	}
	changes := make([]store.Change, min(r.caps.MaxBatch, 5000))
	ids := make([]store.ID, len(changes))
	for i := range changes {
		changes[i] = create(r.fresh(), store.InProgress)
		ids[i] = changes[i].To.ID
	}
	for i, answer := range r.swap(changes...) {
		if !answer.Applied(changes[i]) {
			r.Fatalf("change %d of %d = %s, want applied", i, len(changes), showAnswer(answer))
		}
	}
	for i, answer := range r.get(ids...) {
		if answer.Token != changes[i].To.Token {
			r.Fatalf("record %d of %d is %s", i, len(changes), showAnswer(answer))
		}
	}
}
