package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

func swapTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Commit", swapTxCommit[Tx]},
		{"Rollback", swapTxRollback[Tx]},
		{"SupersededRollsBack", swapTxSuperseded[Tx]},
		{"OwnWrites", swapTxOwnWrites[Tx]},
		{"Isolation", swapTxIsolation[Tx]},
		{"BusyOutside", swapTxBusyOutside[Tx]},
		{"Independent", swapTxIndependent[Tx]},
	}
}

func (r *txHarness[Tx]) swapTx(ctx context.Context, tx Tx, changes ...store.Change) []store.SwapResult {
	r.Helper()
	answers, err := r.tx.SwapTx(ctx, tx, changes)
	if err != nil || len(answers) != len(changes) {
		r.Fatalf("SwapTx of %d changes = %d answers, %v", len(changes), len(answers), err)
	}
	return answers
}

// mustApplyTx makes c in tx and requires that it is applied there.
func (r *txHarness[Tx]) mustApplyTx(ctx context.Context, tx Tx, c store.Change) {
	r.Helper()
	if answer := r.swapTx(ctx, tx, c)[0]; !answer.Applied(c) {
		r.Fatalf("in the transaction %s = %s, want applied", show(c), showAnswer(answer))
	}
}

// afterWrites is a run function that writes c with SwapTx, besides its effect.
func (r *txHarness[Tx]) afterWrites(c store.Change, key string, last *store.Change, err error) runFunc[Tx] {
	return func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, key)
		r.mustApplyTx(ctx, tx, c)
		return last, err
	}
}

func swapTxCommit[Tx any](r *txHarness[Tx]) {
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	r.mustCommit(last.To.ID, true, r.afterWrites(queued, "effect", &last, nil))
	r.mustHoldRecord(last.To)
	r.mustHoldRecord(queued.To)
	r.mustHaveEffects("effect", 1)
}

func swapTxRollback[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.Pending)
	claim, queued := move(rec, token(store.InProgress, 2)), create(r.fresh(), store.Pending)
	for _, c := range []store.Change{queued, claim} {
		r.mustRollBack(r.fresh().ID, true, r.afterWrites(c, "effect", nil, errRun))
	}
	r.mustBeAbsent(queued.To.ID)
	r.mustHoldRecord(rec)
	r.mustHaveEffects("effect", 0)
	r.mustApply(queued)
	r.mustApply(claim)
}

// A superseded last change rolls back the others.
func swapTxSuperseded[Tx any](r *txHarness[Tx]) {
	rec, queued := r.mustCreateIn(store.Pending), create(r.fresh(), store.Pending)
	early := move(rec, token(store.Succeeded, 2))
	early.IfDue = true
	r.mustSupersede(rec.ID, true, r.afterWrites(queued, "effect", &early, nil))
	r.mustBeAbsent(queued.To.ID)
	r.mustHaveEffects("effect", 0)
}

// A transaction reads its own writes.
func swapTxOwnWrites[Tx any](r *txHarness[Tx]) {
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(queued.To, token(store.InProgress, 1))
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustApplyTx(ctx, tx, queued)
		r.mustApplyTx(ctx, tx, queued)
		second := create(queued.To, store.Pending)
		r.checkRejected(second, r.swapTx(ctx, tx, second)[0], queued.To.Token)
		r.mustApplyTx(ctx, tx, claim)
		r.checkRejected(queued, r.swapTx(ctx, tx, queued)[0], claim.To.Token)
		return &last, nil
	})
	r.mustHoldRecord(claim.To)
}

// Other callers do not see them before the commit.
func swapTxIsolation[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.Pending)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustApplyTx(ctx, tx, queued)
		r.mustApplyTx(ctx, tx, claim)
		r.mustBeAbsent(queued.To.ID)
		r.mustHoldRecord(rec)
		r.mustFind(store.Query{}, rec)
		return &last, nil
	})
}

// A record that an open transaction has written is Busy for others at once, and
// does not affect their other changes.
func swapTxBusyOutside[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	rec := r.mustCreateIn(store.Pending)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	theirs := []store.Change{
		create(queued.To, store.InProgress),
		create(r.fresh(), store.InProgress),
		move(rec, token(store.InProgress, 2)),
		create(r.fresh(), store.InProgress),
	}
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustApplyTx(ctx, tx, queued)
		r.mustApplyTx(ctx, tx, claim)
		answers, err := r.store.Swap(r.ctx, theirs)
		if err != nil || len(answers) != len(theirs) {
			r.Fatalf("Swap beside an open transaction = %v, %v, want %d answers", answers, err, len(theirs))
		}
		for i, answer := range answers {
			written := i%2 == 0
			if (written || r.caps.Exclusion != store.ExcludesAll) && answer.Busy != written {
				r.Errorf("change %d of 4 = %s, want Busy for 0 and 2", i, showAnswer(answer))
			}
		}
		return &last, nil
	})
	r.mustReject(theirs[0], queued.To.Token)
	r.mustApply(theirs[1])
	r.mustReject(theirs[2], claim.To.Token)
	r.mustApply(theirs[3])
}

// A superseded or invalid change is an answer, and the transaction continues.
func swapTxIndependent[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.Succeeded)
	last, queued := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Pending)
	second, large := create(rec, store.Pending), create(r.fresh(), store.Pending)
	large.To.Outcome = append(r.largest(), 0)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		answers := r.swapTx(ctx, tx, second, large, queued)
		r.checkRejected(second, answers[0], rec.Token)
		if answers[1].Err == nil || !answers[2].Applied(queued) {
			r.Errorf("too large = %s, its neighbour = %s, want an Err, applied", showAnswer(answers[1]), showAnswer(answers[2]))
		}
		r.addEffect(ctx, tx, "effect")
		return &last, nil
	})
	r.mustHoldRecord(last.To)
	r.mustHoldRecord(queued.To)
	r.mustHaveEffects("effect", 1)
}
