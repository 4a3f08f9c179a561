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
	now, e, d := claimed, q.c.releaseEvent(q.call.op, q.attempt.policy, claimed, callerr.ErrUnavailable), protocol.Decision{}
	ctx, cancel := q.c.bounded(ctx)
	defer cancel()
	return q.c.writer.complete(ctx, func() store.Record { return claimed }, &now, &e, &d) == nil
}

// voidClaim gives back a claim of the call whose reply was lost.
func (q *claimer) voidClaim(ctx context.Context, claim store.Change, before store.Record) {
	void := protocol.Event{Policy: q.attempt.policy}
	q.call.requestTo(&void)
	q.c.voidClaim(ctx, q.call.op, claim, before, void)
}

// voidClaim gives back a claim that may have been applied, or may still be applied,
// although its reply was lost. The operation was not run, so there is proof of no effect.
// void says for which request.
func (c *Core) voidClaim(ctx context.Context, op *operation, claim store.Change, before store.Record, void protocol.Event) {
	claimed := recordAfter(claim, before)
	release := c.releaseEvent(op, void.Policy, claimed, callerr.ErrUnavailable)
	void.Step, void.To, void.Owner, void.Expire, void.Outcome = protocol.StepVoid, store.Pending, newOwner(), release.Expire, release.Outcome
	c.unrecorded.keep(ctx, pendingEnd{record: claimed, silent: true, event: release, void: void, from: claim.If}, callerr.ErrUnavailable)
}

// releaseEvent is the end of a claim whose operation was not run. It does not count
// as a crash.
func (c *Core) releaseEvent(op *operation, policy protocol.Policy, claimed store.Record, why error) protocol.Event {
	return protocol.Event{
		Step: protocol.StepRelease, Token: claimed.Token, Policy: policy, Proven: true, Expire: c.options.timesOf(op, claimed.ID).Retention,
		Outcome: c.interruption(op, claimed, claimed.Attempt, why),
	}
}
