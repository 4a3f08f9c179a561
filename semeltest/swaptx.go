package semeltest

import (
	"context"

	"github.com/semelgo/semel/store"
)

func swapTxChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Commit", swapTxCommit[Tx]},
		check[Tx]{"Rollback", swapTxRollback[Tx]},
		check[Tx]{"NotInForceRollsBack", swapTxNotInForce[Tx]},
		check[Tx]{"OwnWrites", swapTxOwnWrites[Tx]},
		check[Tx]{"Unseen", swapTxUnseen[Tx]},
		check[Tx]{"BusyOutside", swapTxBusyOutside[Tx]},
		check[Tx]{"Apart", swapTxApart[Tx]},
	)
}

func (r *txRig[Tx]) swapTx(ctx context.Context, tx Tx, changes ...store.Change) []store.SwapResult {
	r.Helper()
	answers, err := r.tx.SwapTx(ctx, tx, changes)
	if err != nil || len(answers) != len(changes) {
		r.Fatalf("SwapTx of %d changes = %d answers, %v", len(changes), len(answers), err)
	}
	return answers
}

// mustForceTx asks for c in tx and requires that it is in force there.
func (r *txRig[Tx]) mustForceTx(ctx context.Context, tx Tx, c store.Change) {
	r.Helper()
	if answer := r.swapTx(ctx, tx, c)[0]; !answer.Applied(c) {
		r.Fatalf("in the transaction %s = %s, want in force", show(c), showAnswer(answer))
	}
}

// writing is a run that writes c by SwapTx, besides its effect.
func (r *txRig[Tx]) writing(c store.Change, key string, last *store.Change, err error) runFunc[Tx] {
	return func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, key)
		r.mustForceTx(ctx, tx, c)
		return last, err
	}
}

func swapTxCommit[Tx any](r *txRig[Tx]) {
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	r.mustCommit(last.To.ID, true, r.writing(queued, "effect", &last, nil))
	r.mustStand(last.To)
	r.mustStand(queued.To)
	r.mustEffects("effect", 1)
}

func swapTxRollback[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	claim, queued := move(rec, token(store.InProgress, 2)), create(r.fresh(), store.Pending)
	for _, c := range []store.Change{queued, claim} {
		r.mustRollBack(r.fresh().ID, true, r.writing(c, "effect", nil, errOwn))
	}
	r.mustBeAbsent(queued.To.ID)
	r.mustStand(rec)
	r.mustEffects("effect", 0)
	r.mustForce(queued)
	r.mustForce(claim)
}

// A last change that is not in force takes the others with it.
func swapTxNotInForce[Tx any](r *txRig[Tx]) {
	rec, queued := r.stand(store.Pending), create(r.fresh(), store.Pending)
	early := move(rec, token(store.Succeeded, 2))
	early.IfDue = true
	r.mustRaise(rec.ID, true, r.writing(queued, "effect", &early, nil))
	r.mustBeAbsent(queued.To.ID)
	r.mustEffects("effect", 0)
}

// A transaction sees what it has written.
func swapTxOwnWrites[Tx any](r *txRig[Tx]) {
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(queued.To, token(store.InProgress, 1))
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustForceTx(ctx, tx, queued)
		r.mustForceTx(ctx, tx, queued)
		second := create(queued.To, store.Pending)
		r.refused(second, r.swapTx(ctx, tx, second)[0], queued.To.Token)
		r.mustForceTx(ctx, tx, claim)
		r.refused(queued, r.swapTx(ctx, tx, queued)[0], claim.To.Token)
		return &last, nil
	})
	r.mustStand(claim.To)
}

// Other callers do not see it before the commit.
func swapTxUnseen[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustForceTx(ctx, tx, queued)
		r.mustForceTx(ctx, tx, claim)
		r.mustBeAbsent(queued.To.ID)
		r.mustStand(rec)
		r.mustFind(store.Query{}, rec)
		return &last, nil
	})
}

// What an open transaction has written is Busy for others, at once, and does not
// hinder their other changes.
func swapTxBusyOutside[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	theirs := []store.Change{
		create(queued.To, store.InProgress),
		create(r.fresh(), store.InProgress),
		move(rec, token(store.InProgress, 2)),
		create(r.fresh(), store.InProgress),
	}
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustForceTx(ctx, tx, queued)
		r.mustForceTx(ctx, tx, claim)
		answers, err := r.store.Swap(r.ctx, theirs)
		if err != nil || len(answers) != len(theirs) {
			r.Fatalf("Swap beside an open transaction = %v, %v, want %d answers", answers, err, len(theirs))
		}
		for i, answer := range answers {
			written := i%2 == 0
			if (written || !r.caps.SingleWriter) && answer.Busy != written {
				r.Errorf("change %d of 4 = %s, want Busy for 0 and 2", i, showAnswer(answer))
			}
		}
		return &last, nil
	})
	r.mustRefuse(theirs[0], queued.To.Token)
	r.mustForce(theirs[1])
	r.mustRefuse(theirs[2], claim.To.Token)
	r.mustForce(theirs[3])
}

// A change that is not in force or refused is an answer, and the transaction
// goes on.
func swapTxApart[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Succeeded)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	second, large := create(rec, store.Pending), create(r.fresh(), store.Pending)
	large.To.Outcome = append(r.largest(), 0)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		answers := r.swapTx(ctx, tx, second, large, queued)
		r.refused(second, answers[0], rec.Token)
		if answers[1].Err == nil || !answers[2].Applied(queued) {
			r.Errorf("too large = %s, its neighbour = %s, want an Err, in force", showAnswer(answers[1]), showAnswer(answers[2]))
		}
		r.act(ctx, tx, "effect")
		return &last, nil
	})
	r.mustStand(last.To)
	r.mustStand(queued.To)
	r.mustEffects("effect", 1)
}
