package storetest

import (
	"slices"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func scanChecks() []storeCheck {
	return []storeCheck{
		{"State", scanState},
		{"Operation", scanOperation},
		{"AllFields", scanWhole},
		{"Due", scanDue},
		{"DueOldestFirst", scanDueOldestFirst},
		{"DueLimit", scanDueLimit},
		{"Pages", scanPages},
		{"Skip", scanSkip},
		{"Limits", scanLimits},
	}
}

func (r *harness) scan(q store.Query) []store.Record {
	r.Helper()
	records, err := r.store.Scan(r.ctx, q)
	check.Require(r, err, "Scan(%+v)", q)
	return records
}

// mustFind requires that Scan returns exactly these records, in any order.
func (r *harness) mustFind(q store.Query, want ...store.Record) {
	r.Helper()
	got := idsOf(r.scan(q))
	ids := idsOf(want)
	slices.SortFunc(got, compareIDs)
	slices.SortFunc(ids, compareIDs)
	if !slices.Equal(got, ids) {
		r.Errorf("Scan(state %v, operation %q, due %v) gives %d records, want %d:\n got %v\nwant %v",
			q.State, q.Operation, q.Due, len(got), len(ids), got, ids)
	}
}

func idsOf(records []store.Record) []store.ID {
	ids := make([]store.ID, len(records))
	for i := range records {
		ids[i] = records[i].ID
	}
	return ids
}

func scanState(r *harness) {
	var all []store.Record
	for _, state := range store.States() {
		one, two := r.mustCreateIn(state), r.mustCreateIn(state)
		r.mustFind(store.Query{State: state}, one, two)
		all = append(all, one, two)
	}
	r.mustFind(store.Query{}, all...)
}

func scanOperation(r *harness) {
	var mine, twin []store.Record
	for i, key := range []string{"a", "b", "c"} {
		state := store.States()[i]
		c := create(identity("operation", "scope", key), state)
		r.mustApply(c)
		mine = append(mine, c.To)
		c = create(identity("Operation", "scope", key), state)
		r.mustApply(c)
		twin = append(twin, c.To)
	}
	r.mustFind(store.Query{Operation: "operation"}, mine...)
	r.mustFind(store.Query{Operation: "operation", State: mine[1].State}, mine[1])
	r.mustFind(store.Query{Operation: "Operation"}, twin...)
	r.mustFind(store.Query{Operation: "operatio"})
}

func scanWhole(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	got := r.scan(store.Query{State: store.InProgress})
	if len(got) != 1 {
		r.Fatalf("Scan gives %d records, want 1", len(got))
	}
	if diff := diffRecords(got[0], rec); diff != "" {
		r.Errorf("Scan gives a record that differs (-want +got):\n%s", diff)
	}
	if !near(got[0].Due, farAhead) {
		r.Errorf("Due written as %v a moment ago reads %v", farAhead, got[0].Due)
	}
}

// Due are Pending and InProgress records whose time has come, and no others.
func scanDue(r *harness) {
	due := make(map[store.State]store.Record)
	for _, state := range store.States() {
		r.mustCreateIn(state) // due far ahead
		rec := r.fresh()
		rec.Due = -time.Second
		c := create(rec, state)
		r.mustApply(c)
		due[state] = c.To
	}
	r.mustFind(store.Query{Due: true}, due[store.Pending], due[store.InProgress])
	r.mustFind(store.Query{Due: true, State: store.Pending}, due[store.Pending])
	r.mustFind(store.Query{Due: true, State: store.InProgress, Operation: "storetest"}, due[store.InProgress])
	r.mustFind(store.Query{Due: true, State: store.Succeeded})
	r.mustFind(store.Query{Due: true, Operation: "another"})
}

func scanDueOldestFirst(r *harness) {
	var want []store.ID
	for i, due := range []time.Duration{-5, -1, -4, -2, -3} {
		rec := r.fresh()
		rec.Due = due * time.Minute
		r.mustApply(create(rec, store.States()[i%2]))
		want = append(want, rec.ID)
	}
	want = []store.ID{want[0], want[2], want[4], want[3], want[1]}
	if got := idsOf(r.scan(store.Query{Due: true})); !slices.Equal(got, want) {
		r.Errorf("Scan of due records gives\n %v\nwant the oldest first:\n %v", got, want)
	}
}

// A page of due records holds the oldest.
func scanDueLimit(r *harness) {
	var want []store.ID
	for i := range 6 {
		rec := r.fresh()
		rec.Due = time.Duration(-i-1) * time.Minute
		r.mustApply(create(rec, store.InProgress))
		want = append([]store.ID{rec.ID}, want...)
	}
	if got := idsOf(r.scan(store.Query{Due: true, Limit: 2})); !slices.Equal(got, want[:2]) {
		r.Errorf("Scan of 2 due records gives\n %v\nwant the oldest:\n %v", got, want[:2])
	}
}

// Pages are sorted by ID, if the store is Ordered, and miss and repeat nothing if there are no writers.
func scanPages(r *harness) {
	var want []store.ID
	for i := range 11 {
		want = append(want, r.mustCreateIn(store.States()[i%5]).ID)
	}
	slices.SortFunc(want, compareIDs)
	var got []store.ID
	for q := (store.Query{Limit: 3}); ; {
		page := idsOf(r.scan(q))
		if len(page) > q.Limit {
			r.Fatalf("Scan with Limit %d gives %d records", q.Limit, len(page))
		}
		if len(page) == 0 || len(got) > len(want) {
			break
		}
		got = append(got, page...)
		q.After = page[len(page)-1]
	}
	if !r.caps.Ordered {
		slices.SortFunc(got, compareIDs)
	}
	if !slices.Equal(got, want) {
		r.Errorf("the pages give\n %v\nwant\n %v", got, want)
	}
}

// Skip skips the first records of every list.
func scanSkip(r *harness) {
	var waits, runs []store.ID
	for i := range 6 {
		rec := r.fresh()
		rec.Due = time.Duration(i-10) * time.Minute
		c := create(rec, store.States()[i%2])
		r.mustApply(c)
		if i%2 == 0 {
			waits = append(waits, rec.ID)
		} else {
			runs = append(runs, rec.ID)
		}
	}
	due := []store.ID{waits[0], runs[0], waits[1], runs[1], waits[2], runs[2]}
	byID := slices.SortedFunc(slices.Values(due), compareIDs)
	if !r.caps.Ordered {
		byID = idsOf(r.scan(store.Query{}))
	}
	for _, list := range []struct {
		q    store.Query
		want []store.ID
	}{
		{store.Query{Due: true}, due},
		{store.Query{Due: true, State: store.InProgress}, runs},
		{store.Query{}, byID},
	} {
		for skip := range len(list.want) + 2 {
			q := list.q
			q.Skip, q.Limit = skip, 2
			want := list.want[min(skip, len(list.want)):min(skip+2, len(list.want))]
			if got := idsOf(r.scan(q)); !slices.Equal(got, want) {
				r.Errorf("Scan(%+v) gives\n %v\nwant\n %v", q, got, want)
			}
		}
	}
}

// A Limit of zero means 100, and the maximum is 1000.
func scanLimits(r *harness) {
	const n = store.MaxLimit + 1
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(r.fresh(), store.Succeeded)
	}
	for batch := range slices.Chunk(changes, min(r.caps.MaxBatch, n)) {
		r.swap(batch...)
	}
	for limit, want := range map[int]int{0: store.DefaultLimit, 1: 1, 1000: 1000, 2000: store.MaxLimit} {
		check.Equal(r, len(r.scan(store.Query{Limit: limit})), want, "Scan with Limit %d of %d records gives", limit, n)
	}
}
