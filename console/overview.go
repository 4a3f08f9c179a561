package console

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// overview is the body of the first page.
type overview struct {
	countResult

	Totals     []stateTotal
	Operations []*operationRow
	Waiting    total // Pending records that are due
	Expired    total // InProgress records whose lease has expired
	Doubt      total
	Failures   total
}

// total is a number of records and the age of the oldest.
type total struct {
	Records int64
	Oldest  time.Duration
}

// add adds n records to t.
func (t *total) add(n int64, oldest time.Duration) {
	if n > 0 {
		t.Records += n
		t.Oldest = max(t.Oldest, oldest)
	}
}

// stateTotal is the number of records in one state, and its part of a bar.
type stateTotal struct {
	State   store.State
	Records int64
	X, W    float64 // per cent
}

// operationRow is a row of the table of operations.
type operationRow struct {
	Operation string
	States    []stateTotal
	Records   int64
	Overdue   int64
	Waiting   time.Duration // how long the oldest Pending record is in its state
}

// showOverview shows the counts of an engine.
func showOverview(s *site, w http.ResponseWriter, r *http.Request) error {
	e, err := s.engineOf(r)
	if err != nil {
		return err
	}
	v := overviewOf(e.counts.get(r.Context(), countWait))
	p := s.page(r, e, "./", "Overview", v)
	if v.Reading && !v.Known {
		p.Refresh = 2
	}
	s.render(w, http.StatusOK, "overview", p)
	return nil
}

func overviewOf(counts countResult) *overview {
	v := &overview{countResult: counts}
	all := make(map[string]*operationRow)
	total := &operationRow{States: emptyStates()}
	for _, n := range counts.Counts {
		row := all[n.Operation]
		if row == nil {
			row = &operationRow{Operation: n.Operation, States: emptyStates()}
			all[n.Operation] = row
			v.Operations = append(v.Operations, row)
		}
		row.add(n)
		total.add(n)
		switch n.State {
		case store.Pending:
			v.Waiting.add(n.Overdue, n.Oldest)
		case store.InProgress:
			v.Expired.add(n.Overdue, n.Oldest)
		case store.InDoubt:
			v.Doubt.add(n.Records, n.Oldest)
		case store.Failed:
			v.Failures.add(n.Records, n.Oldest)
		case store.Absent, store.Succeeded:
		}
	}
	for _, row := range v.Operations {
		row.draw()
	}
	total.draw()
	v.Totals = total.States
	slices.SortFunc(v.Operations, func(a, b *operationRow) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Operation, b.Operation))
	})
	return v
}

func emptyStates() (all []stateTotal) {
	for _, s := range store.States() {
		all = append(all, stateTotal{State: s})
	}
	return all
}

// add adds the count to its state.
func (o *operationRow) add(n store.Count) {
	o.Records += n.Records
	o.Overdue += n.Overdue
	for i := range o.States {
		if o.States[i].State == n.State {
			o.States[i].Records += n.Records
		}
	}
	if n.State == store.Pending {
		o.Waiting = max(o.Waiting, n.Oldest)
	}
}

// draw places the states on the bar. A few records among many are still visible.
func (o *operationRow) draw() {
	const least = 1.5
	x, small := 0.0, 0.0
	width := func(n int64) float64 { return 100 * float64(n) / float64(max(o.Records, 1)) }
	for _, s := range o.States {
		if w := width(s.Records); s.Records > 0 && w < least {
			small += least - w
		}
	}
	for i := range o.States {
		s := &o.States[i]
		if s.Records > 0 {
			s.W = max(width(s.Records)*(1-small/100), least)
		}
		s.X = x
		x += s.W
	}
	for i := range o.States { // the widths that were raised made the bar longer
		o.States[i].X *= 100 / max(x, 1)
		o.States[i].W *= 100 / max(x, 1)
	}
}
