package semel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel/store"
)

// lostClaims are the owners of claims of waiting calls whose answer never came.
// What they may have claimed was not run, so it is given back when it shows,
// before its lease is over.
type orphanedClaims struct {
	mu    sync.Mutex
	items []orphanedClaim
}

type orphanedClaim struct {
	operation string
	owner     uint64
	until     time.Time // later than anything that is still on its way
	// run are the attempts that the owner has claimed and heard of after all.
	run map[store.ID]uint32

	next  time.Time // when to look for what has come of it
	pause time.Duration
}

// maxLostClaims bounds the list; beyond it the lease decides.
const maxOrphanedClaims = 100

func (l *orphanedClaims) add(item orphanedClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) < maxOrphanedClaims {
		l.items = append(l.items, item)
	}
}

// due returns those of an operation that are to be looked for now, and forgets
// those that nothing can come of any more.
func (l *orphanedClaims) due(operation string) []orphanedClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = slices.DeleteFunc(l.items, func(i orphanedClaim) bool { return until(i.until) < 0 })
	var due []orphanedClaim
	for _, i := range l.items {
		if i.operation == operation && until(i.next) <= 0 {
			due = append(due, i)
		}
	}
	return due
}

// looked lets an owner not be looked for again before a pause, which grows: many of
// them are no reason to ask a store that has just come back for little else.
func (l *orphanedClaims) backOff(owner uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.items {
		if i := &l.items[n]; i.owner == owner {
			i.next, i.pause = now().Add(i.pause), 2*i.pause
		}
	}
}

// lose remembers that the claims of an owner may stand, or yet come to, beside
// those that it knows of and runs.
func (q *dequeueCall) rememberOrphaned(owner uint64, known []store.Record) {
	lost := orphanedClaim{
		operation: q.op.name, owner: owner, until: now().Add(q.times.lease + q.c.options.RecordTimeout),
		run: make(map[store.ID]uint32, len(known)), pause: q.times.lease / 32,
	}
	for _, r := range known {
		lost.run[r.ID] = r.Attempt
	}
	q.c.orphaned.add(lost)
}

// giveBackLost gives back what has come of claims that were lost.
func (q *dequeueCall) releaseOrphaned(ctx context.Context, dequeuer store.Dequeuer) {
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	for _, lost := range q.c.orphaned.due(q.op.name) {
		claimed, err := dequeuer.Dequeue(ctx, store.Dequeue{
			Operation: q.op.name, Limit: q.c.caps.MaxBatch, Owner: lost.owner, Again: true,
		})
		if err != nil {
			return
		}
		q.c.orphaned.backOff(lost.owner)
		for _, r := range claimed {
			if lost.run[r.ID] != r.Attempt {
				q.release(ctx, r, ErrUnavailable)
			}
		}
	}
}

// giveBackUnanswered gives back, later, what a Swap without an answer may have
// claimed or may yet claim.
func (q *dequeueCall) releaseUnanswered(ctx context.Context, waiting []store.Record, changes []store.Change) {
	for i, r := range waiting {
		claimed := recordAfter(changes[i], r)
		void := event{
			step: stepVoid, to: store.Pending, owner: newOwner(), policy: q.policy, identity: r,
			expire: q.c.options.timesOf(q.op, r.ID).retention, outcome: q.c.interruption(q.op, r, claimed.Attempt, ErrUnavailable),
		}
		q.c.keepUnrecorded(ctx, pendingEnd{
			record: claimed, silent: true, event: q.releaseEvent(claimed, ErrUnavailable), void: void, from: changes[i].If,
		}, ErrUnavailable)
	}
}
