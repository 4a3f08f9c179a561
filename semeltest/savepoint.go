package semeltest

import "github.com/semelgo/semel/store"

// savepointChecks are about runs that fail and whose failure is kept.
func savepointChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Undoes", savepointUndoes[Tx]},
		check[Tx]{"NotInForce", savepointNotInForce[Tx]},
	)
}

// What run did is undone, domain writes and records alike, and its failure is
// committed.
func savepointUndoes[Tx any](r *txRig[Tx]) {
	failed := create(r.fresh(), store.Failed)
	failed.To.Outcome = []byte("why")
	r.mustCommit(failed.To.ID, true, r.ending("create", &failed, errOwn))
	r.mustStand(failed.To)
	r.mustEffects("create", 0)

	rec := create(r.fresh(), store.Pending).To
	r.mustForce(store.Change{To: rec})
	failed = move(rec, token(store.Failed, 2))
	failed.To.Outcome = []byte("why")
	queued := create(r.fresh(), store.Pending)
	r.mustCommit(rec.ID, true, r.writing(queued, "move", &failed, errOwn))
	r.mustStand(failed.To)
	r.mustBeAbsent(queued.To.ID)
	r.mustEffects("move", 0)
	r.mustForce(queued)
}

func savepointNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Succeeded)
	failed := create(rec, store.Failed)
	r.mustRaise(rec.ID, true, r.ending("effect", &failed, errOwn))
	r.mustStand(rec)
	r.mustEffects("effect", 0)
}
