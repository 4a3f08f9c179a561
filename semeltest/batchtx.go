package semeltest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// batchTxChecks are about batches beside open transactions, and in them.
func batchTxChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"OneBusy", oneBusy[Tx]},
		check[Tx]{"DuplicateIDs", duplicateIDsTx[Tx]},
	)
}

// One record that an open transaction has written is Busy, wherever it is in a
// batch, and all others of the batch are made while that transaction is open.
func oneBusy[Tx any](r *txRig[Tx]) {
	if r.caps.SingleWriter {
		r.Skip("Capabilities say Exclusive")
	}
	for _, place := range []int{0, 20, 39} {
		claim := move(r.stand(store.Pending), token(store.InProgress, 2))
		changes := make([]store.Change, 40)
		for i := range changes {
			changes[i] = create(r.fresh(), store.InProgress)
			if i%2 == 1 {
				r.mustForce(changes[i])
				changes[i] = move(changes[i].To, token(store.Succeeded, 1))
			}
		}
		changes[place] = move(claim.To, token(store.InProgress, 2))
		changes[place].If = claim.If
		last := create(r.fresh(), store.Succeeded)
		r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustForceTx(ctx, tx, claim)
			answers, err := r.store.Swap(r.ctx, changes)
			if err != nil || len(answers) != len(changes) {
				r.Fatalf("Swap with one busy record = %d answers, %v", len(answers), err)
			}
			for i, answer := range answers {
				if i == place && !answer.Busy {
					r.Errorf("change %d, of what an open transaction has written = %s, want Busy", i, showAnswer(answer))
				}
				if i != place && !answer.Applied(changes[i]) {
					r.Errorf("change %d beside a busy one = %s, want in force", i, showAnswer(answer))
				}
			}
			return &last, nil
		})
		r.mustRefuse(changes[place], claim.To.Token)
	}
}

// A batch that names a record twice is refused whole in a transaction too, which
// goes on.
func duplicateIDsTx[Tx any](r *txRig[Tx]) {
	twice, last := create(r.fresh(), store.InProgress), create(r.fresh(), store.Succeeded)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		if answers, err := r.tx.SwapTx(ctx, tx, []store.Change{twice, twice}); err == nil {
			r.Errorf("SwapTx of a batch that names a record twice = %d answers, want an error", len(answers))
		}
		return &last, nil
	})
	r.mustBeAbsent(twice.To.ID)
	r.mustStand(last.To)
	r.mustEffects("effect", 1)
}
