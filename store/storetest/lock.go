package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

func lockChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Busy", lockedIsBusy[Tx]},
		{"FreedByCommit", lockFreedByCommit[Tx]},
		{"FreedByRollback", lockFreedByRollback[Tx]},
		{"OtherRecords", lockSparesOtherRecords[Tx]},
		{"AgainstSwap", lockAgainstSwap[Tx]},
		{"Readers", lockSparesReaders[Tx]},
	}
}

// Only one transaction can have the right to a record, whether the record exists or
// not. Another transaction gets Busy at once.
func lockedIsBusy[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	rec := r.mustCreateIn(store.Pending)
	for _, last := range []store.Change{
		create(r.fresh(), store.Succeeded),
		move(rec, token(store.Succeeded, 2)),
	} {
		id := last.To.ID
		r.mustCommit(id, true, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
			if current.Busy {
				r.Error("the first holder gets Busy")
			}
			r.addEffect(ctx, tx, id.String())
			if !r.isLocked(id) {
				r.Error("a second transaction has the right to the record, want Busy")
			}
			return &last, nil
		})
		r.mustHaveEffects(id.String(), 1)
	}
}

func lockFreedByCommit[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustCommit(c.To.ID, true, r.effectThen("effect", &c, nil))
	if r.isLocked(c.To.ID) {
		r.Error("the right to the record was not given back")
	}
}

func lockFreedByRollback[Tx any](r *txHarness[Tx]) {
	rec := r.fresh()
	r.mustRollBack(rec.ID, true, r.effectThen("effect", nil, errRun))
	if r.isLocked(rec.ID) {
		r.Error("the right to the record was not given back")
	}
	r.mustApply(create(rec, store.InProgress))
}

// Other records are free, unless the store has a single writer.
func lockSparesOtherRecords[Tx any](r *txHarness[Tx]) {
	if r.caps.Exclusion == store.ExcludesAll {
		r.Skip("Capabilities say Exclusive")
	}
	mine, other := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Succeeded)
	r.mustCommit(mine.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
		r.mustCommit(other.To.ID, true, r.effectThen("other", &other, nil))
		r.mustApply(create(r.fresh(), store.InProgress))
		return &mine, nil
	})
	r.mustHoldRecord(mine.To)
	r.mustHoldRecord(other.To)
}

// A Swap of a locked record is Busy, or it is applied and the holder's transaction
// fails. It never waits, and the two are never both applied.
func lockAgainstSwap[Tx any](r *txHarness[Tx]) {
	mine := create(r.fresh(), store.Succeeded)
	theirs := create(mine.To, store.InProgress)
	var answer store.SwapResult
	verdict, err := r.tx.Atomic(r.ctx, mine.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		answers, err := r.store.Swap(r.ctx, []store.Change{theirs})
		if err != nil || len(answers) != 1 {
			r.Fatalf("Swap of a held record = %v, %v, want an answer", answers, err)
		}
		answer = answers[0]
		return &mine, nil
	})
	switch {
	case answer.Busy && verdict == store.Committed && err == nil:
		r.mustHoldRecord(mine.To)
		r.mustHaveEffects("effect", 1)
	case answer.Applied(theirs) && verdict == store.NotCommitted && err != nil:
		r.mustHoldRecord(theirs.To)
		r.mustHaveEffects("effect", 0)
	default:
		r.Errorf("Swap of a held record = %s and the holder's Atomic = %v, %v: want one of them", showAnswer(answer), verdict, err)
	}
}

// Readers get the committed record.
func lockSparesReaders[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.Pending)
	last := move(rec, token(store.Succeeded, 2))
	r.mustCommit(rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		r.mustHoldRecord(rec)
		return &last, nil
	})
}
