package semel

import (
	"context"
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// Times are the durations that an operation's attempts run with.
type Times struct {
	Lease     time.Duration // how long a leader may be silent
	Heartbeat time.Duration // how often its lease is to be renewed
	MaxRun    time.Duration // the longest it may go on; zero: no limit
	Retention time.Duration // how long a finished record is kept
	Wait      time.Duration // how long a follower waits
}

// Times returns what op says, and the engine where op says nothing.
func (c *Core) Times(op Declared) Times {
	t := c.options.times(op.declared())
	return Times{Lease: t.lease, Heartbeat: t.beat, MaxRun: t.maxRun, Retention: t.retention, Wait: t.wait}
}

// Beat renews the leases of attempts that [Core.Dequeue] gave, all in one asking
// of the store. An attempt that somebody took over has its context cancelled with
// the cause [ErrLeaseLost], one whose key was cancelled with [ErrCancelled]. Those
// that have ended are passed over. Without an answer nothing is cancelled before the
// lease that was confirmed last is over; it is waited for no longer than until the
// next heartbeat of one of them.
func (c *Core) RenewLeases(ctx context.Context, attempts []*Attempt) {
	for len(attempts) > 0 {
		n := min(len(attempts), c.caps.MaxBatch)
		c.renewLeases(ctx, attempts[:n])
		attempts = attempts[n:]
	}
}

func (c *Core) renewLeases(ctx context.Context, attempts []*Attempt) {
	sent, wait := c.now(), c.options.RecordTimeout
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
		c.emit(ctx, EventStoreError, store.Record{}, err)
		return
	}
	for i, a := range alive {
		a.renewer.settle(sent, changes[i], answers[i])
	}
	c.checkCancelRequests(ctx, alive)
}

// lastOfEach leaves out attempts whose record has come round to the same worker
// again, and which do not know yet that their lease is over.
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

// latest is the last attempt of each record.
type latestAttempts map[store.ID]*Attempt

func (l latestAttempts) add(a *Attempt) {
	if of := l[a.call.id]; of == nil || of.token.Attempt < a.token.Attempt {
		l[a.call.id] = a
	}
}
