package semel

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/store"
)

// Times are the durations of an operation's attempts.
type Times struct {
	Lease     time.Duration // until other callers may take over, without a renewal
	Heartbeat time.Duration // interval of renewals
	MaxRun    time.Duration // upper bound of an attempt; zero: none
	Retention time.Duration // how long a finished record is kept
	Wait      time.Duration // how long a follower waits
}

// Times returns the durations of op: its own, and otherwise the engine's.
func (c *Core) Times(op Declared) Times {
	t := c.options.times(op.declared())
	return Times{Lease: t.lease, Heartbeat: t.beat, MaxRun: t.maxRun, Retention: t.retention, Wait: t.wait}
}

// RenewLeases renews the leases of attempts of [Core.Dequeue] in one round trip. It
// cancels the context of an attempt that was taken over with the cause
// [ErrLeaseLost], and of an attempt whose key was cancelled with [ErrCancelled]. It
// skips attempts that have ended. If the store does not answer, no context is
// cancelled before its last confirmed lease has expired. RenewLeases waits at most
// until the next heartbeat is due.
func (c *Core) RenewLeases(ctx context.Context, attempts []*Attempt) {
	for len(attempts) > 0 {
		n := min(len(attempts), c.caps.MaxBatch)
		c.renewLeases(ctx, attempts[:n])
		attempts = attempts[n:]
	}
}

func (c *Core) renewLeases(ctx context.Context, attempts []*Attempt) {
	sent, wait := c.clock.Now(), c.options.RecordTimeout
	var alive []*Attempt
	var changes []store.Change
	for _, a := range lastOfEach(attempts) {
		if change, ok := a.renewer.renewal(sent); ok {
			alive, changes = append(alive, a), append(changes, change)
			wait = min(wait, a.times.beat)
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
	c.checkCancelRequests(ctx, alive)
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
