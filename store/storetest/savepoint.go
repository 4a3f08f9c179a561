package storetest

import "github.com/semelgo/semel/store"

// savepointChecks test runs that fail and whose failure is stored.
func savepointChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"UndoesWrites", savepointUndoes[Tx]},
		{"Superseded", savepointSuperseded[Tx]},
	}
}

// The writes of run are undone, domain writes and records alike, and its failure is
// committed.
func savepointUndoes[Tx any](r *txHarness[Tx]) {
	failed := create(r.fresh(), store.Failed)
	failed.To.Outcome = []byte("why")
	r.mustCommit(failed.To.ID, true, r.effectThen("create", &failed, errRun))
	r.mustHoldRecord(failed.To)
	r.mustHaveEffects("create", 0)

	rec := create(r.fresh(), store.Pending).To
	r.mustApply(store.Change{To: rec})
	failed = move(rec, token(store.Failed, 2))
	failed.To.Outcome = []byte("why")
	queued := create(r.fresh(), store.Pending)
	r.mustCommit(rec.ID, true, r.afterWrites(queued, "move", &failed, errRun))
	r.mustHoldRecord(failed.To)
	r.mustBeAbsent(queued.To.ID)
	r.mustHaveEffects("move", 0)
	r.mustApply(queued)
}

func savepointSuperseded[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.Succeeded)
	failed := create(rec, store.Failed)
	r.mustSupersede(rec.ID, true, r.effectThen("effect", &failed, errRun))
	r.mustHoldRecord(rec)
	r.mustHaveEffects("effect", 0)
}
