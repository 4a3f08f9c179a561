package semel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// orphanedClaims has the owners of Dequeue calls without a reply. The claims that
// such a call may have made were not run. They are released when they are found,
// before their leases expire.
type orphanedClaims struct {
	mu    sync.Mutex
	items []orphanedClaim
}

type orphanedClaim struct {
	operation string
	owner     uint64
	until     time.Time // after the last moment at which the call can be applied
	// run has the attempts of the owner whose reply arrived after all.
	run map[store.ID]uint32

	next  time.Time // when to search for claims again
	pause time.Duration
}

// maxOrphanedClaims limits the list. Claims beyond it wait for the end of their
// leases.
const maxOrphanedClaims = 100

func (l *orphanedClaims) add(item orphanedClaim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.items) < maxOrphanedClaims {
		l.items = append(l.items, item)
	}
}

// due returns an operation's owners to search for now, and removes those that have
// expired.
func (l *orphanedClaims) due(operation string) []orphanedClaim {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = slices.DeleteFunc(l.items, func(i orphanedClaim) bool { return clock.Until(i.until) < 0 })
	var due []orphanedClaim
	for _, i := range l.items {
		if i.operation == operation && clock.Until(i.next) <= 0 {
			due = append(due, i)
		}
	}
	return due
}

// backOff delays the next search for an owner's claims, each time for longer, so
// that the searches do not load a store that has just recovered.
func (l *orphanedClaims) backOff(owner uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.items {
		if i := &l.items[n]; i.owner == owner {
			i.next, i.pause = clock.Now().Add(i.pause), 2*i.pause
		}
	}
}

// rememberOrphaned remembers an owner whose claims may be applied, or may still be
// applied, and the claims that are known and run.
func (q *dequeueCall) rememberOrphaned(owner uint64, known []store.Record) {
	lost := orphanedClaim{
		operation: q.op.name, owner: owner, until: clock.Now().Add(q.times.lease + q.c.options.RecordTimeout),
		run: make(map[store.ID]uint32, len(known)), pause: q.times.lease / 32,
	}
	for _, r := range known {
		lost.run[r.ID] = r.Attempt
	}
	q.c.orphaned.add(lost)
}

// releaseOrphaned releases the claims of orphaned owners.
func (q *dequeueCall) releaseOrphaned(ctx context.Context, dequeuer store.Dequeuer) {
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	for _, lost := range q.c.orphaned.due(q.op.name) {
		claimed, err := dequeuer.Dequeue(ctx, store.Dequeue{
			Operation: q.op.name, Limit: q.c.caps.MaxBatch, Owner: lost.owner, Reread: true,
		})
		if err != nil {
			return
		}
		q.c.orphaned.backOff(lost.owner)
		for _, r := range claimed {
			if lost.run[r.ID] != r.Attempt {
				q.release(ctx, r, callerr.ErrUnavailable)
			}
		}
	}
}

// releaseUnanswered releases the claims of a Swap without a reply in the
// background.
func (q *dequeueCall) releaseUnanswered(ctx context.Context, waiting []store.Record, changes []store.Change) {
	for i, r := range waiting {
		claimed := recordAfter(changes[i], r)
		void := protocol.Event{
			Step: protocol.StepVoid, To: store.Pending, Owner: newOwner(), Policy: q.policy, Identity: r,
			Expire: q.c.options.timesOf(q.op, r.ID).retention, Outcome: q.c.interruption(q.op, r, claimed.Attempt, callerr.ErrUnavailable),
		}
		q.c.keepUnrecorded(ctx, pendingEnd{
			record: claimed, silent: true, event: q.releaseEvent(claimed, callerr.ErrUnavailable), void: void, from: changes[i].If,
		}, callerr.ErrUnavailable)
	}
}
