package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// wireTxChecks lose the reply to a commit.
func wireTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Commit", wireCommit[Tx]},
		{"CommitFinish", wireCommitFinish[Tx]},
		{"CommitKept", wireCommitKept[Tx]},
		{"AtomicBatch", wireAtomicBatch[Tx]},
	}
}

// mustCommitWithLostReply runs a transaction and loses the reply to its commit. The
// verdict may be Committed or Unknown, never NotCommitted.
func (r *txHarness[Tx]) mustCommitWithLostReply(id store.ID, hold bool, run runFunc[Tx]) {
	r.Helper()
	r.withLostReply(func() {
		verdict, err := r.tx.Atomic(r.ctx, id, hold, run)
		told := verdict == store.Committed && err == nil || verdict == store.Unknown && err != nil
		if !told {
			r.Errorf("Atomic whose commit lost its reply = %v, %v, want Unknown and an error, or Committed", verdict, err)
		}
	})
}

func wireCommit[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = []byte("the end")
	r.mustCommitWithLostReply(c.To.ID, true, r.effectThen("effect", &c, nil))
	r.mustHoldRecord(c.To)
	r.mustHaveEffects("effect", 1)
	r.mustApply(c)
	r.mustSupersede(c.To.ID, true, r.effectThen("effect", &c, nil))
	r.mustHaveEffects("effect", 1)
}

// There is no certificate that nothing was committed: the leader finds its own
// outcome instead.
func wireCommitFinish[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, store.Token{State: store.Succeeded, Attempt: 1, Owner: rec.Owner})
	r.mustCommitWithLostReply(rec.ID, false, r.effectThen("effect", &finish, nil))
	r.mustHaveEffects("effect", 1)
	r.mustReject(move(rec, store.Token{State: store.Failed, Attempt: 1, Owner: rec.Owner}), finish.To.Token)
	r.mustApply(finish)
}

// A stored failure stays stored, without the effect that it undid.
func wireCommitKept[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Failed)
	c.To.Outcome = []byte("why")
	r.mustCommitWithLostReply(c.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		return &c, errRun
	})
	r.mustHoldRecord(c.To)
	r.mustHaveEffects("effect", 0)
	r.mustApply(c)
}

// After a lost reply to AtomicBatch the verdict is Unknown or Committed. A retry
// does not execute the statements again.
func wireAtomicBatch[Tx any](r *txHarness[Tx]) {
	if why := r.lacksBatches(); why != "" {
		r.Skip(why)
	}
	made := create(r.fresh(), store.Pending)
	made.To.Outcome = []byte("progress")
	finish := move(made.To, token(store.Succeeded, 1))
	for i, c := range []store.Change{made, finish} {
		r.withLostReply(func() {
			answer, verdict, err := r.subject.Batches.send(r.ctx, c, true, effectsOf("effect", "effect"))
			told := verdict == store.Committed && err == nil && answer.Applied(c) || verdict == store.Unknown && err != nil
			if !told {
				r.Errorf("AtomicBatch that lost its reply = %s, %v, %v, want Unknown and an error, or Committed", showAnswer(answer), verdict, err)
			}
		})
		r.mustApply(c)
		if answer := r.mustNotCommitBatch(c, true, effectsOf("effect")); !answer.Applied(c) {
			r.Errorf("repeated %s = %s, want its token", show(c), showAnswer(answer))
		}
		r.mustHaveEffects("effect", 2*(i+1))
	}
	rival := create(made.To, store.Succeeded)
	r.checkRejected(rival, r.mustNotCommitBatch(rival, true, effectsOf("effect")), finish.To.Token)
	r.mustHaveEffects("effect", 4)
}
