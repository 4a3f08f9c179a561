package semeltest

import (
	"context"

	"github.com/semelgo/semel/store"
)

func holdChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Busy", holdBusy[Tx]},
		check[Tx]{"FreedByCommit", holdFreedByCommit[Tx]},
		check[Tx]{"FreedByRollback", holdFreedByRollback[Tx]},
		check[Tx]{"OthersGoOn", holdOthersGoOn[Tx]},
		check[Tx]{"AgainstSwap", holdAgainstSwap[Tx]},
		check[Tx]{"ReadersGoOn", holdReadersGoOn[Tx]},
	)
}

// The right to a record is one transaction's, whether the record stands or not.
// Others are told at once.
func holdBusy[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	for _, last := range []store.Change{
		create(r.fresh(), store.Succeeded),
		move(rec, token(store.Succeeded, 2)),
	} {
		id := last.To.ID
		r.mustCommit(id, true, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
			if stands.Busy {
				r.Error("the first holder is told Busy")
			}
			r.act(ctx, tx, id.String())
			if !r.held(id) {
				r.Error("a second transaction has the right to the record, want Busy")
			}
			return &last, nil
		})
		r.mustEffects(id.String(), 1)
	}
}

func holdFreedByCommit[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustCommit(c.To.ID, true, r.ending("effect", &c, nil))
	if r.held(c.To.ID) {
		r.Error("the right to the record was not given back")
	}
}

func holdFreedByRollback[Tx any](r *txRig[Tx]) {
	rec := r.fresh()
	r.mustRollBack(rec.ID, true, r.ending("effect", nil, errOwn))
	if r.held(rec.ID) {
		r.Error("the right to the record was not given back")
	}
	r.mustForce(create(rec, store.InProgress))
}

// Another record is not held, unless an open transaction keeps everybody out.
func holdOthersGoOn[Tx any](r *txRig[Tx]) {
	if r.caps.SingleWriter {
		r.Skip("Capabilities say Exclusive")
	}
	mine, other := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Succeeded)
	r.mustCommit(mine.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
		r.mustCommit(other.To.ID, true, r.ending("other", &other, nil))
		r.mustForce(create(r.fresh(), store.InProgress))
		return &mine, nil
	})
	r.mustStand(mine.To)
	r.mustStand(other.To)
}

// A Swap of a held record is Busy, or it is in force and the holder's
// transaction fails. It never waits, and never are both in force.
func holdAgainstSwap[Tx any](r *txRig[Tx]) {
	mine := create(r.fresh(), store.Succeeded)
	theirs := create(mine.To, store.InProgress)
	var answer store.SwapResult
	verdict, err := r.tx.Atomic(r.ctx, mine.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		answers, err := r.store.Swap(r.ctx, []store.Change{theirs})
		if err != nil || len(answers) != 1 {
			r.Fatalf("Swap of a held record = %v, %v, want an answer", answers, err)
		}
		answer = answers[0]
		return &mine, nil
	})
	switch {
	case answer.Busy && verdict == store.Committed && err == nil:
		r.mustStand(mine.To)
		r.mustEffects("effect", 1)
	case answer.Applied(theirs) && verdict == store.NotCommitted && err != nil:
		r.mustStand(theirs.To)
		r.mustEffects("effect", 0)
	default:
		r.Errorf("Swap of a held record = %s and the holder's Atomic = %v, %v: want one of them", showAnswer(answer), verdict, err)
	}
}

// Readers get the committed record.
func holdReadersGoOn[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	last := move(rec, token(store.Succeeded, 2))
	r.mustCommit(rec.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		r.mustStand(rec)
		return &last, nil
	})
}
