package storetest

import (
	"context"
	"errors"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// atomicBatchChecks test a change and statements that are sent as one batch.
func atomicBatchChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Commit", batchCommits[Tx]},
		{"EachStatement", batchRunsEach[Tx]},
		{"Empty", batchEmpty[Tx]},
		{"CreateSuperseded", batchCreateSuperseded[Tx]},
		{"MoveSuperseded", batchMoveSuperseded[Tx]},
		{"NotDue", batchNotDue[Tx]},
		{"AlreadyApplied", batchAlreadyApplied[Tx]},
		{"Rejected", batchRejected[Tx]},
		{"Fails", batchFails[Tx]},
		{"FailureFreesRecord", batchFailureFreesRecord[Tx]},
		{"Locked", batchOfLockedRecord[Tx]},
		{"OtherRecords", batchSparesOtherRecords[Tx]},
		{"CanceledBefore", batchCanceledBefore[Tx]},
		{"CanceledDuring", batchCanceledDuring[Tx]},
		{"Race", batchRace[Tx]},
	}
}

// effectsOf returns a statement with an effect for each key.
func effectsOf(keys ...string) []Statement {
	all := make([]Statement, len(keys))
	for i, key := range keys {
		all[i].Effect = key
	}
	return all
}

// mustCommitBatch sends a change with statements and requires that they commit.
func (r *txHarness[Tx]) mustCommitBatch(c store.Change, hold bool, all []Statement) {
	r.Helper()
	answer, verdict, err := r.subject.Batches.send(r.ctx, c, hold, all)
	if verdict != store.Committed || err != nil || !answer.Applied(c) {
		r.Fatalf("AtomicBatch of %s = %s, %v, %v, want applied, Committed, nil", show(c), showAnswer(answer), verdict, err)
	}
}

// mustNotCommitBatch sends a change that cannot be applied and requires an answer
// with the reason.
func (r *txHarness[Tx]) mustNotCommitBatch(c store.Change, hold bool, all []Statement) store.SwapResult {
	r.Helper()
	answer, verdict, err := r.subject.Batches.send(r.ctx, c, hold, all)
	check.Result(verdict, err)(r, store.NotCommitted, "AtomicBatch of %s = %s (want NotCommitted, nil)", show(c), showAnswer(answer))
	return answer
}

// Record and statements commit together, in a create and in a change.
func batchCommits[Tx any](r *txHarness[Tx]) {
	for _, hold := range []bool{true, false} {
		rec := r.fresh()
		rec.Due, rec.Outcome = farAhead, []byte("progress")
		claim := create(rec, store.InProgress)
		r.mustCommitBatch(claim, hold, effectsOf("claim"))
		r.mustHoldRecord(claim.To)

		finish := move(claim.To, token(store.Succeeded, 1))
		r.mustCommitBatch(finish, hold, effectsOf("finish"))
		want := claim.To
		want.Token = finish.To.Token
		r.mustHoldRecord(want)
	}
	r.mustHaveEffects("claim", 2)
	r.mustHaveEffects("finish", 2)
}

// Each statement runs once, even if it equals another one.
func batchRunsEach[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustCommitBatch(c, true, effectsOf("first", "twice", "twice", "last"))
	r.mustHaveEffects("first", 1)
	r.mustHaveEffects("twice", 2)
	r.mustHaveEffects("last", 1)
}

// Without statements the batch is the change alone, with the same locking.
func batchEmpty[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustCommitBatch(c, true, nil)
	r.mustHoldRecord(c.To)
	second := create(c.To, store.Succeeded)
	r.checkRejected(second, r.mustNotCommitBatch(second, true, nil), c.To.Token)
}

func batchCreateSuperseded[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	for _, hold := range []bool{true, false} {
		second := create(rec, store.Succeeded)
		r.checkRejected(second, r.mustNotCommitBatch(second, hold, effectsOf("effect")), rec.Token)
	}
	r.mustHoldRecord(rec)
	r.mustHaveEffects("effect", 0)
}

func batchMoveSuperseded[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.Pending, Attempt: 1, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
	} {
		old := rec
		old.Token = zombie
		finish := move(old, token(store.Succeeded, 1))
		r.checkRejected(finish, r.mustNotCommitBatch(finish, false, effectsOf("effect")), rec.Token)
	}
	gone := r.fresh()
	gone.Token = rec.Token
	finish := move(gone, token(store.Succeeded, 1))
	r.checkRejected(finish, r.mustNotCommitBatch(finish, true, effectsOf("effect")), store.Token{})
	r.mustBeAbsent(gone.ID)
	r.mustHoldRecord(rec)
	r.mustHaveEffects("effect", 0)
}

func batchNotDue[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	take := move(rec, token(store.Succeeded, 2))
	take.IfDue = true
	r.checkRejected(take, r.mustNotCommitBatch(take, true, effectsOf("early")), rec.Token)
	r.mustHoldRecord(rec)
	r.mustHaveEffects("early", 0)

	c := create(r.fresh(), store.InProgress)
	r.mustApply(c)
	take = move(c.To, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustCommitBatch(take, true, effectsOf("due"))
	r.mustHaveEffects("due", 1)
}

// A change that is already applied was committed with the statements of its own
// call. Those of this call must not run; the answer says that the change is
// applied.
func batchAlreadyApplied[Tx any](r *txHarness[Tx]) {
	made := create(r.fresh(), store.Pending)
	finish := move(made.To, token(store.Succeeded, 1))
	for _, c := range []store.Change{made, finish} {
		r.mustCommitBatch(c, true, effectsOf("once"))
		for _, hold := range []bool{true, false} {
			if answer := r.mustNotCommitBatch(c, hold, effectsOf("twice")); !answer.Applied(c) {
				r.Errorf("%s that is already applied = %s, want its token", show(c), showAnswer(answer))
			}
		}
	}
	r.mustHaveEffects("once", 2)
	r.mustHaveEffects("twice", 0)
}

// A change that the store cannot keep is rejected, and no statement runs.
func batchRejected[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = append(r.largest(), 0)
	if answer := r.mustNotCommitBatch(c, true, effectsOf("effect")); answer.Err == nil {
		r.Errorf("AtomicBatch with an outcome that is too large = %s, want an Err", showAnswer(answer))
	}
	r.mustBeAbsent(c.To.ID)
	r.mustHaveEffects("effect", 0)
}

// A statement that the database rejects rolls everything back, at any position.
func batchFails[Tx any](r *txHarness[Tx]) {
	rec := r.mustCreateIn(store.InProgress)
	for _, c := range []store.Change{create(r.fresh(), store.Succeeded), move(rec, token(store.Succeeded, 1))} {
		for place := range 3 {
			all := effectsOf("a", "b", "c")
			all[place] = Statement{Fails: true}
			_, verdict, err := r.subject.Batches.send(r.ctx, c, true, all)
			if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInterrupted) || errors.Is(err, store.ErrNotStarted) {
				r.Errorf("AtomicBatch whose statement %d fails = %v, %v, want NotCommitted and its error", place, verdict, err)
			}
			for _, key := range []string{"a", "b", "c"} {
				r.mustHaveEffects(key, 0)
			}
		}
	}
	r.mustHoldRecord(rec)
	r.mustFind(store.Query{}, rec)
}

// A failed batch leaves nothing: its change can be applied at once.
func batchFailureFreesRecord[Tx any](r *txHarness[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	_, _, _ = r.subject.Batches.send(r.ctx, c, true, []Statement{{Fails: true}})
	if r.isLocked(c.To.ID) {
		r.Error("the right to the record was not given back")
	}
	r.mustCommitBatch(c, true, effectsOf("effect"))
	r.mustHaveEffects("effect", 1)
}

// A record that another transaction has locked is Busy at once, and no statement
// runs.
func batchOfLockedRecord[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	rec := r.mustCreateIn(store.Pending)
	for _, c := range []store.Change{create(r.fresh(), store.Succeeded), move(rec, token(store.Succeeded, 2))} {
		r.mustRollBack(c.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
			if answer := r.mustNotCommitBatch(c, true, effectsOf("early")); !answer.Busy {
				r.Errorf("AtomicBatch of a held record = %s, want Busy", showAnswer(answer))
			}
			return nil, errRun
		})
		r.mustCommitBatch(c, true, effectsOf("after"))
	}
	r.mustHaveEffects("early", 0)
	r.mustHaveEffects("after", 2)
}

// Other records are free, unless the store has a single writer.
func batchSparesOtherRecords[Tx any](r *txHarness[Tx]) {
	if r.caps.Exclusion == store.ExcludesAll {
		r.Skip("Capabilities say Exclusive")
	}
	held, other := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Succeeded)
	r.mustCommit(held.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
		r.mustCommitBatch(other, true, effectsOf("other"))
		return &held, nil
	})
	r.mustHoldRecord(held.To)
	r.mustHaveEffects("other", 1)
}
