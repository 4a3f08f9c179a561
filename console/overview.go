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
	Queues     []queueRow
	Batches    *batchTotal // nil: not known
	Waiting    total       // Pending records that are due
	Expired    total       // InProgress records whose lease has expired
	Doubt      total
	Failures   total
	Letters    int64 // dead letters, which are Failed or InDoubt
}

// queueRow are the Pending records of an operation.
type queueRow struct {
	Operation  string
	Due, Later int64
	Oldest     time.Duration // the longest time that one of them is Pending
	// DueW, LaterW and OldestW are the lengths of bars, in per cent.
	DueW, LaterW, OldestW float64
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
}

// overviewPage returns the page with the counts of an engine.
func overviewPage(s *site, r *http.Request) (*page, error) {
	e, err := s.engineOf(r)
	if err != nil {
		return nil, err
	}
	v := overviewOf(e.counts.get(r.Context(), countWait))
	v.Batches = e.Batches.total()
	p := s.page(r, e, "./", "Overview", v)
	if v.Reading && !v.Known {
		p.Refresh = 2
	}
	return p, nil
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
		v.Letters += n.DeadLetters
		switch n.State {
		case store.Pending:
			v.Waiting.add(n.Overdue, n.Oldest)
			v.Queues = append(v.Queues, queueRow{Operation: n.Operation, Due: n.Overdue, Later: n.Records - n.Overdue, Oldest: n.Oldest})
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
	drawQueues(v.Queues)
	return v
}

// drawQueues sorts the queues, the deepest first, and draws the bars of their depths and
// ages, each compared with the largest one.
func drawQueues(queues []queueRow) {
	slices.SortFunc(queues, func(a, b queueRow) int {
		return cmp.Or(cmp.Compare(b.Due+b.Later, a.Due+a.Later), cmp.Compare(a.Operation, b.Operation))
	})
	deepest, oldest := int64(1), time.Duration(1)
	for i := range queues {
		deepest, oldest = max(deepest, queues[i].Due+queues[i].Later), max(oldest, queues[i].Oldest)
	}
	for i := range queues {
		q := &queues[i]
		q.DueW, q.LaterW = 100*float64(q.Due)/float64(deepest), 100*float64(q.Later)/float64(deepest)
		q.OldestW = 100 * float64(q.Oldest) / float64(oldest)
	}
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
	for i := range o.States {
		if o.States[i].State == n.State {
			o.States[i].Records += n.Records
		}
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
