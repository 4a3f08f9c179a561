package semeltest

import (
	"context"
	"runtime"

	"github.com/semelgo/semel/store"
)

// goexit ends the goroutine, as t.FailNow does.
func goexit() { runtime.Goexit() }

// savepointChecks are about runs that fail and whose failure is kept.
func savepointChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Create", savepointCreate[Tx]},
		check[Tx]{"Move", savepointMove[Tx]},
		check[Tx]{"SwapTx", savepointSwapTx[Tx]},
		check[Tx]{"NotInForce", savepointNotInForce[Tx]},
	)
}

// What run did is undone, and its failure is committed.
func savepointCreate[Tx any](r *txRig[Tx]) {
	failed := create(r.fresh(), store.Failed)
	failed.To.Outcome = []byte("why")
	r.mustCommit(failed.To.ID, true, r.ending("effect", &failed, errOwn))
	r.mustStand(failed.To)
	r.mustEffects("effect", 0)
}

func savepointMove[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	failed := move(rec, token(store.Failed, 2))
	failed.To.Outcome = []byte("why")
	r.mustCommit(rec.ID, true, r.ending("effect", &failed, errOwn))
	want := failed.To
	want.Input = rec.Input
	r.mustStand(want)
	r.mustEffects("effect", 0)
}

// Undone are the records that run wrote, too.
func savepointSwapTx[Tx any](r *txRig[Tx]) {
	failed, queued := create(r.fresh(), store.Failed), create(r.fresh(), store.Pending)
	r.mustCommit(failed.To.ID, true, func(ctx context.Context, tx Tx, _ store.Standing) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		r.swapTx(ctx, tx, queued)
		return &failed, errOwn
	})
	r.mustStand(failed.To)
	r.mustBeAbsent(queued.To.ID)
	r.mustEffects("effect", 0)
	r.mustForce(queued)
}

func savepointNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Succeeded)
	failed := create(rec, store.Failed)
	r.mustRaise(rec.ID, true, r.ending("effect", &failed, errOwn))
	r.mustStand(rec)
	r.mustEffects("effect", 0)
}
