package outbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// failure is that of an aggregate whose first event could not be published.
type failure struct {
	retry    time.Time // not before
	tries    int
	counted  int   // failures that count against the event, with those of other relays
	accepted int64 // what the broker had confirmed at the last failure
}

// maxExcept limits the aggregates that a read leaves out.
const maxExcept = 50

// pass reads the first events, publishes them, and removes those that were published. It
// reports whether there may be more.
func (l *lane) pass(stop context.Context) (more bool, err error) {
	if err := l.flush(); err != nil { //nolint:contextcheck // what an earlier transaction could not change; an attempt has its own context
		return false, err
	}
	if l.redriving.Swap(false) {
		if err := l.unpark(); err != nil { //nolint:contextcheck // see above
			l.redriving.Store(true)
			return false, err
		}
	}
	q := store.OutboxHead{Lane: l.number, Limit: l.relay.options.Batch, Except: l.waiting()}
	rows, err := l.relay.table.Head(l.attempt.Context(), q) //nolint:contextcheck // see above
	if err != nil {
		return false, err
	}
	if len(rows) < q.Limit {
		l.forgetMissing(q.Except, rows)
	}
	all := l.publishRows(stop, rows)
	progress := !l.pending.empty()
	return !all || progress && len(rows) == q.Limit, l.flush() //nolint:contextcheck // see above
}

// waiting returns aggregates whose retry is not due.
func (l *lane) waiting() (except [][2]string) {
	for a, f := range l.failing {
		if len(except) < maxExcept && time.Until(f.retry) > 0 { //nolint:forbidigo // of this process's own delays
			except = append(except, [2]string{a.topic, a.name})
		}
	}
	return except
}

// forgetMissing forgets the failures of aggregates that are neither among all rows nor left out: their
// events were deleted by other means than a relay, and a retry would wait for them for ever.
func (l *lane) forgetMissing(except [][2]string, rows []store.OutboxEvent) {
	maps.DeleteFunc(l.failing, func(a aggregate, _ *failure) bool {
		return !slices.Contains(except, [2]string{a.topic, a.name}) &&
			!slices.ContainsFunc(rows, func(r store.OutboxEvent) bool { return a == aggregate{r.Topic, r.Aggregate} })
	})
}

// flushAfter is how long messages are published before they are removed. It bounds what
// is published again after a crash, when the broker is slow.
const flushAfter = time.Second

// publishRows publishes rows in their order, and reports whether it has come to the last.
func (l *lane) publishRows(stop context.Context, rows []store.OutboxEvent) (all bool) {
	slow := time.NewTimer(flushAfter)
	defer slow.Stop()
	blocked := make(map[aggregate]bool) // an earlier event was left out, so the later ones are, too
	for i := range rows {
		row := &rows[i]
		a := aggregate{row.Topic, row.Aggregate}
		if row.Parking == store.Parked {
			l.pending.aside = append(l.pending.aside, row.Seq)
			continue
		}
		f := l.failing[a]
		if blocked[a] || row.Parking != store.NotParked || f != nil && time.Until(f.retry) > 0 { //nolint:forbidigo // of this process's own delays
			blocked[a] = true
			continue
		}
		select {
		case <-slow.C:
			return false
		default:
		}
		if l.over(stop) || l.relay.breaker.open() && !l.pending.empty() {
			return false
		}
		leave := l.relay.breaker.enter(stop, l)
		if leave == nil {
			return false
		}
		err := l.relay.publish(l.attempt.Context(), row) //nolint:contextcheck // see above
		if err != nil {
			l.probe(l.failing[a]) //nolint:contextcheck // see above
		}
		l.published(row, err)
		leave()
		blocked[a] = err != nil
		if len(l.pending.failures) > 0 { // a count must not be lost with this process
			return false
		}
	}
	return true
}

// published takes the result of a message.
func (l *lane) published(row *store.OutboxEvent, err error) {
	a := aggregate{row.Topic, row.Aggregate}
	switch {
	case err == nil:
		l.relay.accepted.Add(1)
		l.relay.breaker.succeeded()
		l.pending.removed = append(l.pending.removed, row.Seq)
		delete(l.failing, a)
		return
	case l.attempt.Context().Err() != nil: // says nothing about the message
		return
	}
	f, permanent := l.failing[a], isPermanent(err)
	accepted := l.relay.accepted.Load()
	counts := permanent
	if f == nil {
		f = &failure{tries: row.Failures, counted: row.Failures}
		l.failing[a] = f
		counts = counts || (row.Failures == 0 || accepted > 0) && !l.relay.breaker.open()
	} else {
		counts = counts || f.accepted != accepted
	}
	f.tries++
	f.accepted, f.retry = accepted, time.Now().Add(delayAfter(f.tries)) //nolint:forbidigo // of this process's own delays
	if !permanent {
		l.relay.breaker.failedFor(a)
	}
	if !counts {
		return
	}
	f.counted++
	l.pending.count(row.Seq, f.counted)
	if !permanent && f.counted <= l.relay.options.MaxFailures {
		return
	}
	l.pending.count(row.Seq, 0) // for a redrive
	l.pending.parked = append(l.pending.parked, store.ParkedAggregate{
		Lane: l.number, Topic: row.Topic, Aggregate: row.Aggregate, Seq: row.Seq, ID: row.ID, Type: row.Type,
		Failures: f.counted, Reason: reasonOf(err),
	})
}

// maxReason limits the stored text of an error, in bytes.
const maxReason = 4 << 10

// flush makes the pending changes, in a transaction that commits only if this relay still
// has the lane. They are kept until it has: making them twice does no harm.
func (l *lane) flush() error {
	if l.pending.empty() {
		return nil
	}
	c := &l.pending
	err := l.relay.fenced(l.attempt.Context(), l.attempt, func(ctx context.Context, tx store.OutboxTx) error {
		for seq, n := range c.failures {
			if err := tx.Failed(ctx, seq, n); err != nil {
				return err
			}
		}
		for _, p := range c.parked {
			if err := tx.Park(ctx, p); err != nil {
				return err
			}
		}
		if err := tx.SetAside(ctx, c.aside); err != nil {
			return err
		}
		return tx.Remove(ctx, c.removed)
	})
	if err != nil {
		return err
	}
	for _, p := range c.parked {
		adapter.Report(l.attempt.Context(), l.relay.engine, event.Parked, l.attempt.Record(),
			fmt.Errorf("outbox: the event %s was not published after %d failures, and its aggregate is parked: %s", p.ID, p.Failures, p.Reason))
		delete(l.failing, aggregate{p.Topic, p.Aggregate})
	}
	l.pending = changes{}
	return nil
}

// unpark ends the parking of the aggregates that an operator has redriven.
func (l *lane) unpark() error {
	return l.relay.fenced(l.attempt.Context(), l.attempt, func(ctx context.Context, tx store.OutboxTx) error {
		return tx.Unpark(ctx, l.number)
	})
}
