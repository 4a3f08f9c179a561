package storetest

import (
	"slices"

	"github.com/semelgo/semel/store"
)

func getChecks() []storeCheck {
	return []storeCheck{
		{"Order", getOrder},
		{"Absent", getAbsent},
		{"AllFields", getWhole},
	}
}

// get reads the ids and requires one answer each.
func (r *harness) get(ids ...store.ID) []store.SwapResult {
	r.Helper()
	answers, err := r.store.Get(r.ctx, ids)
	if err != nil || len(answers) != len(ids) {
		r.Fatalf("Get(%d ids) = %d answers, %v", len(ids), len(answers), err)
	}
	return answers
}

func getOrder(r *harness) {
	var ids []store.ID
	tokens := make(map[store.ID]store.Token)
	for range 9 {
		rec := r.mustCreateIn(store.InProgress)
		ids, tokens[rec.ID] = append(ids, rec.ID), rec.Token
	}
	slices.SortFunc(ids, compareIDs)
	for range 2 {
		for i, answer := range r.get(ids...) {
			if answer.Token != tokens[ids[i]] || answer.Record == nil || answer.Record.ID != ids[i] {
				r.Fatalf("answer %d = %s, want that of ID %d", i, showAnswer(answer), i)
			}
		}
		slices.Reverse(ids)
	}
}

// An absent record is answered in its place, by the zero SwapResult.
func getAbsent(r *harness) {
	there, gone := r.mustCreateIn(store.Failed), r.fresh()
	answers := r.get(gone.ID, there.ID, r.fresh().ID)
	for _, i := range []int{0, 2} {
		if a := answers[i]; a.Token != (store.Token{}) || a.Record != nil || a.Busy || a.Err != nil {
			r.Errorf("answer %d, of an absent ID = %s, want nothing", i, showAnswer(a))
		}
	}
	if got := answers[1].Token; got != there.Token {
		r.Errorf("answer 1 = %s, want %s", showToken(got), showToken(there.Token))
	}
}

// Get returns the complete record, and its token twice.
func getWhole(r *harness) {
	rec := r.mustCreateIn(store.Succeeded)
	answer := r.get(rec.ID)[0]
	if answer.Record == nil {
		r.Fatal("Get gives no Record")
	}
	if answer.Token != rec.Token {
		r.Errorf("SwapResult.Token = %s, want %s", showToken(answer.Token), showToken(rec.Token))
	}
	r.mustHoldRecord(rec)
}
