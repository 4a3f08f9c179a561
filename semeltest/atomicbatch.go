package semeltest

import (
	"context"
	"errors"

	"github.com/semelgo/semel/store"
)

// atomicBatchChecks are about a change and statements that are handed over together.
func atomicBatchChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Commit", batchCommits[Tx]},
		check[Tx]{"Each", batchEach[Tx]},
		check[Tx]{"Empty", batchEmpty[Tx]},
		check[Tx]{"CreateNotInForce", batchCreateNotInForce[Tx]},
		check[Tx]{"MoveNotInForce", batchMoveNotInForce[Tx]},
		check[Tx]{"NotDue", batchNotDue[Tx]},
		check[Tx]{"NotTwice", batchNotTwice[Tx]},
		check[Tx]{"Refused", batchRefused[Tx]},
		check[Tx]{"Fails", batchFails[Tx]},
		check[Tx]{"FailsFree", batchFailsFree[Tx]},
		check[Tx]{"Held", batchHeld[Tx]},
		check[Tx]{"OthersGoOn", batchOthersGoOn[Tx]},
		check[Tx]{"NotBegun", batchNotBegun[Tx]},
		check[Tx]{"CallerGone", batchCallerGone[Tx]},
		check[Tx]{"Race", batchRace[Tx]},
	)
}

// effectsOf has an effect of each key.
func effectsOf(keys ...string) []Statement {
	all := make([]Statement, len(keys))
	for i, key := range keys {
		all[i].Effect = key
	}
	return all
}

// mustSend hands over a change and statements, and requires that they commit.
func (r *txRig[Tx]) mustSend(c store.Change, hold bool, all []Statement) {
	r.Helper()
	answer, verdict, err := r.subject.Batches.send(r.ctx, c, hold, all)
	if verdict != store.Committed || err != nil || !answer.Applied(c) {
		r.Fatalf("AtomicBatch of %s = %s, %v, %v, want in force, Committed, nil", show(c), showAnswer(answer), verdict, err)
	}
}

// sendInVain hands over a change that cannot be made, and requires an answer that
// says why.
func (r *txRig[Tx]) sendInVain(c store.Change, hold bool, all []Statement) store.SwapResult {
	r.Helper()
	answer, verdict, err := r.subject.Batches.send(r.ctx, c, hold, all)
	if verdict != store.NotCommitted || err != nil {
		r.Errorf("AtomicBatch of %s = %s, %v, %v, want NotCommitted, nil", show(c), showAnswer(answer), verdict, err)
	}
	return answer
}

// Record and statements commit together, in a create and in a change.
func batchCommits[Tx any](r *txRig[Tx]) {
	for _, hold := range []bool{true, false} {
		rec := r.fresh()
		rec.Due, rec.Outcome = long, []byte("progress")
		claim := create(rec, store.InProgress)
		r.mustSend(claim, hold, effectsOf("claim"))
		r.mustStand(claim.To)

		finish := move(claim.To, token(store.Succeeded, 1))
		r.mustSend(finish, hold, effectsOf("finish"))
		want := claim.To
		want.Token = finish.To.Token
		r.mustStand(want)
	}
	r.mustEffects("claim", 2)
	r.mustEffects("finish", 2)
}

// Each statement is run, and none of them twice, however alike they are.
func batchEach[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustSend(c, true, effectsOf("first", "twice", "twice", "last"))
	r.mustEffects("first", 1)
	r.mustEffects("twice", 2)
	r.mustEffects("last", 1)
}

// With no statements it is the change, which is as exclusive as with some.
func batchEmpty[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	r.mustSend(c, true, nil)
	r.mustStand(c.To)
	second := create(c.To, store.Succeeded)
	r.refused(second, r.sendInVain(second, true, nil), c.To.Token)
}

func batchCreateNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	for _, hold := range []bool{true, false} {
		second := create(rec, store.Succeeded)
		r.refused(second, r.sendInVain(second, hold, effectsOf("effect")), rec.Token)
	}
	r.mustStand(rec)
	r.mustEffects("effect", 0)
}

func batchMoveNotInForce[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.Pending, Attempt: 1, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
	} {
		old := rec
		old.Token = zombie
		finish := move(old, token(store.Succeeded, 1))
		r.refused(finish, r.sendInVain(finish, false, effectsOf("effect")), rec.Token)
	}
	gone := r.fresh()
	gone.Token = rec.Token
	finish := move(gone, token(store.Succeeded, 1))
	r.refused(finish, r.sendInVain(finish, true, effectsOf("effect")), store.Token{})
	r.mustBeAbsent(gone.ID)
	r.mustStand(rec)
	r.mustEffects("effect", 0)
}

func batchNotDue[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	take := move(rec, token(store.Succeeded, 2))
	take.IfDue = true
	r.refused(take, r.sendInVain(take, true, effectsOf("early")), rec.Token)
	r.mustStand(rec)
	r.mustEffects("early", 0)

	c := create(r.fresh(), store.InProgress)
	r.mustForce(c)
	take = move(c.To, token(store.Succeeded, 2))
	take.IfDue = true
	r.mustSend(take, true, effectsOf("due"))
	r.mustEffects("due", 1)
}

// A change that stands already was committed with the statements of its own call.
// Those of this one must not come on top; the answer says that it stands.
func batchNotTwice[Tx any](r *txRig[Tx]) {
	made := create(r.fresh(), store.Pending)
	finish := move(made.To, token(store.Succeeded, 1))
	for _, c := range []store.Change{made, finish} {
		r.mustSend(c, true, effectsOf("once"))
		for _, hold := range []bool{true, false} {
			if answer := r.sendInVain(c, hold, effectsOf("twice")); !answer.Applied(c) {
				r.Errorf("%s that stands already = %s, want its token", show(c), showAnswer(answer))
			}
		}
	}
	r.mustEffects("once", 2)
	r.mustEffects("twice", 0)
}

// What the store cannot keep is an answer, and nothing is run.
func batchRefused[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	c.To.Outcome = append(r.largest(), 0)
	if answer := r.sendInVain(c, true, effectsOf("effect")); answer.Err == nil {
		r.Errorf("AtomicBatch with an outcome that is too large = %s, want an Err", showAnswer(answer))
	}
	r.mustBeAbsent(c.To.ID)
	r.mustEffects("effect", 0)
}

// A statement that the database refuses takes everything with it, wherever it is.
func batchFails[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.InProgress)
	for _, c := range []store.Change{create(r.fresh(), store.Succeeded), move(rec, token(store.Succeeded, 1))} {
		for place := range 3 {
			all := effectsOf("a", "b", "c")
			all[place] = Statement{Fails: true}
			_, verdict, err := r.subject.Batches.send(r.ctx, c, true, all)
			if verdict != store.NotCommitted || err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrInterrupted) || errors.Is(err, store.ErrNotStarted) {
				r.Errorf("AtomicBatch whose statement %d fails = %v, %v, want NotCommitted and its error", place, verdict, err)
			}
			for _, key := range []string{"a", "b", "c"} {
				r.mustEffects(key, 0)
			}
		}
	}
	r.mustStand(rec)
	r.mustFind(store.Query{}, rec)
}

// Nothing is left behind of a batch that failed: its change can be made at once.
func batchFailsFree[Tx any](r *txRig[Tx]) {
	c := create(r.fresh(), store.Succeeded)
	_, _, _ = r.subject.Batches.send(r.ctx, c, true, []Statement{{Fails: true}})
	if r.held(c.To.ID) {
		r.Error("the right to the record was not given back")
	}
	r.mustSend(c, true, effectsOf("effect"))
	r.mustEffects("effect", 1)
}

// A record that another transaction has the right to is Busy at once, and nothing
// runs.
func batchHeld[Tx any](r *txRig[Tx]) {
	rec := r.stand(store.Pending)
	for _, c := range []store.Change{create(r.fresh(), store.Succeeded), move(rec, token(store.Succeeded, 2))} {
		r.mustRollBack(c.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
			if answer := r.sendInVain(c, true, effectsOf("early")); !answer.Busy {
				r.Errorf("AtomicBatch of a held record = %s, want Busy", showAnswer(answer))
			}
			return nil, errOwn
		})
		r.mustSend(c, true, effectsOf("after"))
	}
	r.mustEffects("early", 0)
	r.mustEffects("after", 2)
}

// Another record is not held, unless an open transaction keeps everybody out.
func batchOthersGoOn[Tx any](r *txRig[Tx]) {
	if r.caps.SingleWriter {
		r.Skip("Capabilities say Exclusive")
	}
	held, other := create(r.fresh(), store.Succeeded), create(r.fresh(), store.Succeeded)
	r.mustCommit(held.To.ID, true, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
		r.mustSend(other, true, effectsOf("other"))
		return &held, nil
	})
	r.mustStand(held.To)
	r.mustEffects("other", 1)
}
