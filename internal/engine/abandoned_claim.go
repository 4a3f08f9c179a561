package engine

import (
	"context"

	"github.com/semelgo/semel/internal/callerr"
	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// abandonClaim handles a claim without a reply. If the claim is in a batch that was
// sent, it waits for the batch's reply.
func (q *claimer) abandonClaim(ctx context.Context, claim store.Change, before store.Record, err error) {
	on := asAbandoned(err)
	if on == nil {
		q.voidClaim(ctx, claim, before)
		return
	}
	q.c.open.Add(1) // the caller is still counted, so the engine is not closed
	q.c.batching.goRun("give up", func() {
		defer q.c.leave()
		answer, err := on.Wait()
		switch {
		case err != nil, answer.Applied(claim) && !q.releaseClaim(ctx, claim, before):
			q.voidClaim(ctx, claim, before)
		}
	})
}

// releaseClaim releases an applied claim in a batch, and reports whether the store
// has answered.
func (q *claimer) releaseClaim(ctx context.Context, claim store.Change, before store.Record) bool {
	claimed := recordAfter(claim, before)
	now, e, d := claimed, q.releaseEvent(claim, before), protocol.Decision{}
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	return q.c.writer.complete(ctx, func() store.Record { return claimed }, &now, &e, &d) == nil
}

// releaseEvent is the end of a claim whose operation was not run.
func (q *claimer) releaseEvent(claim store.Change, before store.Record) protocol.Event {
	return protocol.Event{
		Step: protocol.StepRelease, Token: claim.To.Token, Policy: q.attempt.policy, Proven: true, Expire: q.attempt.times.retention,
		Outcome: q.c.interruption(q.call.op, before, claim.To.Attempt, callerr.ErrUnavailable),
	}
}

// voidClaim gives back a claim that may have been applied, or may still be applied,
// although its reply was lost. The operation was not run, so there is proof of no effect.
func (q *claimer) voidClaim(ctx context.Context, claim store.Change, before store.Record) {
	release := q.releaseEvent(claim, before)
	void := protocol.Event{
		Step: protocol.StepVoid, To: store.Pending, Owner: newOwner(), Policy: q.attempt.policy, Request: q.call,
		Identity: q.call.identity(), Expire: q.attempt.times.retention, Outcome: release.Outcome, Issued: q.call.isIssued(),
	}
	q.c.unrecorded.keep(ctx, pendingEnd{
		record: recordAfter(claim, before), silent: true, event: release, void: void, from: claim.If,
	}, callerr.ErrUnavailable)
}
