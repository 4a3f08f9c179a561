package engine

import (
	"context"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/clock"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

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
		q.c.unrecorded.keep(ctx, pendingEnd{
			record: claimed, silent: true, event: q.releaseEvent(claimed, callerr.ErrUnavailable), void: void, from: changes[i].If,
		}, callerr.ErrUnavailable)
	}
}
