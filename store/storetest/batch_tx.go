package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// batchTxChecks test batches beside open transactions and inside them.
func batchTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"OneBusy", oneBusy[Tx]},
		{"DuplicateIDs", duplicateIDsTx[Tx]},
	}
}

// A record that an open transaction has written is Busy, at any position of a
// batch, and all other changes of the batch are applied while that transaction is
// open.
func oneBusy[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	if r.caps.Exclusion == store.ExcludesAll {
		r.Skip("Capabilities say Exclusive")
	}
	for _, place := range []int{0, 20, 39} {
		claim := move(r.mustCreateIn(store.Pending), token(store.InProgress, 2))
		changes := make([]store.Change, 40)
		for i := range changes {
			changes[i] = create(r.fresh(), store.InProgress)
			if i%2 == 1 {
				r.mustApply(changes[i])
				changes[i] = move(changes[i].To, token(store.Succeeded, 1))
			}
		}
		changes[place] = move(claim.To, token(store.InProgress, 2))
		changes[place].If = claim.If
		last := create(r.fresh(), store.Succeeded)
		r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustApplyTx(ctx, tx, claim)
			answers, err := r.store.Swap(r.ctx, changes)
			if err != nil || len(answers) != len(changes) {
				r.Fatalf("Swap with one busy record = %d answers, %v", len(answers), err)
			}
			for i, answer := range answers {
				if i == place && !answer.Busy {
					r.Errorf("change %d, of what an open transaction has written = %s, want Busy", i, showAnswer(answer))
				}
				if i != place && !answer.Applied(changes[i]) {
					r.Errorf("change %d beside a busy one = %s, want applied", i, showAnswer(answer))
				}
			}
			return &last, nil
		})
		r.mustReject(changes[place], claim.To.Token)
	}
}

// A batch with a duplicate ID is rejected in a transaction too, and the transaction
// continues.
func duplicateIDsTx[Tx any](r *txHarness[Tx]) {
	twice, last := create(r.fresh(), store.InProgress), create(r.fresh(), store.Succeeded)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		if answers, err := r.tx.SwapTx(ctx, tx, []store.Change{twice, twice}); err == nil {
			r.Errorf("SwapTx of a batch that names a record twice = %d answers, want an error", len(answers))
		}
		return &last, nil
	})
	r.mustBeAbsent(twice.To.ID)
	r.mustHoldRecord(last.To)
	r.mustHaveEffects("effect", 1)
}
