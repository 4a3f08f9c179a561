package engine

import (
	"context"
	"slices"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/store"
)

// TimesOf returns the durations of op: its own, and otherwise the engine's.
func TimesOf(c *Core, op Declared) Times { return c.options.times(op.declared()) }

// RenewLeases renews the leases of attempts of [Dequeue] in one round trip.
func RenewLeases(ctx context.Context, c *Core, attempts []*Attempt) {
	for len(attempts) > 0 {
		n := min(len(attempts), c.caps.MaxBatch)
		renewBatch(ctx, c, attempts[:n])
		attempts = attempts[n:]
	}
}

func renewBatch(ctx context.Context, c *Core, attempts []*Attempt) {
	sent, wait := clock.Now(), c.options.RecordTimeout
	var alive []*Attempt
	var changes []store.Change
	for _, a := range lastOfEach(attempts) {
		if change, ok := a.renewer.renewal(sent); ok {
			alive, changes = append(alive, a), append(changes, change)
			wait = min(wait, a.times.Heartbeat)
		}
	}
	if len(changes) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answers, err := c.store.Swap(ctx, changes)
	if err != nil {
		c.emit(ctx, event.StoreError, store.Record{}, err)
		return
	}
	for i, a := range alive {
		a.renewer.settle(sent, changes[i], answers[i])
	}
	checkCancelRequests(ctx, c, alive)
}

// lastOfEach leaves out attempts whose record the same worker has claimed again,
// and that do not know yet that their lease has expired.
func lastOfEach(attempts []*Attempt) []*Attempt {
	last := latestAttempts{}
	for _, a := range attempts {
		last.add(a)
	}
	if len(last) == len(attempts) {
		return attempts
	}
	left := make([]*Attempt, 0, len(last))
	for _, a := range attempts {
		switch of := last[a.call.id]; {
		case of == a && !slices.Contains(left, a):
			left = append(left, a)
		case of.token.Attempt > a.token.Attempt:
			a.renewer.lose("a later attempt of its record runs")
		}
	}
	return left
}

// latestAttempts has the last attempt of each record.
type latestAttempts map[store.ID]*Attempt

func (l latestAttempts) add(a *Attempt) {
	if of := l[a.call.id]; of == nil || of.token.Attempt < a.token.Attempt {
		l[a.call.id] = a
	}
}
