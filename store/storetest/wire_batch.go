package storetest

import "github.com/semelgo/semel/store"

// After a lost reply to AtomicBatch the verdict is Unknown or Committed. A retry
// does not execute the statements again.
func wireAtomicBatch[Tx any](r *txHarness[Tx]) {
	if why := lacksBatches(r.subject); why != "" {
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
