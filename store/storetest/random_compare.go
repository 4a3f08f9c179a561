package storetest

import (
	"slices"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func (h *randomHistory) compareAnswers(m model, changes []store.Change, answers []store.SwapResult) {
	h.Helper()
	for i, got := range answers {
		want, wrote := m.swap(changes[i])
		switch {
		case wrote:
			h.seen["made"]++
		case want.Record == nil && want.Token == changes[i].To.Token:
			h.seen["made before"]++
		default:
			h.seen["superseded"]++
		}
		if got.Err != nil || got.Busy || got.Token != want.Token || (got.Record == nil) != (want.Record == nil) {
			h.Errorf("%s = %s, want %s", show(changes[i]), showAnswer(got), showAnswer(want))
		} else if want.Record != nil {
			h.compareRecords(show(changes[i])+" returns the current record", *got.Record, *want.Record)
		}
	}
}

// compareRecords compares the written fields and the remaining times.
func (h *randomHistory) compareRecords(what string, got, want store.Record) {
	h.Helper()
	if diff := diffRecords(got, want); diff != "" {
		h.Errorf("%s otherwise (-want +got):\n%s", what, diff)
	}
	due, expire := want.Due, want.Expire
	if want.State != store.Pending && want.State != store.InProgress {
		due = 0
	}
	if want.State.Unfinished() {
		expire = 0
	}
	if !near(got.Due, due) || !near(got.Expire, expire) || (expire == 0) != (got.Expire == 0) {
		h.Errorf("%s with Due %v and Expire %v, want %v and %v", what, got.Due, got.Expire, due, expire)
	}
	if !recent(got.Age) || !recent(got.Since) {
		h.Errorf("%s with Age %v and Since %v, want it to be new", what, got.Age, got.Since)
	}
}

// compare requires that store and model have the same records.
func (h *randomHistory) compare() {
	h.Helper()
	h.compareScan(store.Query{Operation: h.operation}, func(modelRecord) bool { return true })
}

// compareReports requires the same due records, counts and reads.
func (h *randomHistory) compareReports() {
	h.Helper()
	h.compareScan(store.Query{Operation: h.operation, Due: true}, modelRecord.isDue)
	ids := make([]store.ID, records)
	for i := range ids {
		ids[i] = h.record(i).ID
	}
	for i, got := range h.get(ids...) {
		want, there := h.model[ids[i]]
		if got.Token != want.Token || (got.Record != nil) != there || got.Busy || got.Err != nil {
			h.Errorf("Get = %s, want %s", showAnswer(got), showToken(want.Token))
		}
	}
	if counter, ok := h.store.(store.Counter); ok {
		counts, err := counter.Counts(h.ctx)
		check.NoError(h, err, "Counts")
		counts = slices.DeleteFunc(counts, func(c store.Count) bool { return c.Operation != h.operation })
		for i := range counts {
			counts[i].Oldest = 0
		}
		if want := h.model.counts(h.operation); !slices.Equal(counts, want) {
			h.Errorf("Counts = %+v, want %+v", counts, want)
		}
	}
}

func (h *randomHistory) compareScan(q store.Query, which func(modelRecord) bool) {
	h.Helper()
	found := h.scan(q)
	ids := idsOf(found)
	slices.SortFunc(ids, compareIDs)
	if want := h.model.ids(which); !slices.Equal(ids, want) {
		h.Errorf("Scan(%+v) gives %v, want %v", q, ids, want)
		return
	}
	for _, got := range found {
		h.compareRecords("Scan returns the current record", got, h.model[got.ID].Record)
	}
}
