package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// zombieChecks test a leader that was taken over and does not know it: none of its
// writes is applied.
func zombieChecks() []storeCheck {
	return []storeCheck{
		{"Heartbeat", zombieHeartbeat},
		{"Complete", func(r *harness) { r.checkZombieEnds(store.Succeeded, store.Failed) }},
		{"Release", func(r *harness) { r.checkZombieEnds(store.Pending) }},
		{"Doubt", func(r *harness) { r.checkZombieEnds(store.InDoubt) }},
		{"Claim", zombieClaim},
		{"AfterPurge", zombieAfterPurge},
	}
}

// zombieTxChecks test a zombie that writes in a transaction.
func zombieTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Complete", zombieCompletesTx[Tx]},
		{"Write", zombieWritesTx[Tx]},
		{"TakenOverInside", zombieTakenOverInside[Tx]},
	}
}

// mustTakeOver lets a leader's lease expire and another caller take over. It returns
// the record as the zombie knows it, and the current one.
func (r *harness) mustTakeOver() (zombie, winner store.Record) {
	r.Helper()
	rec := r.fresh()
	rec.Input, rec.Outcome = []byte("input"), []byte("progress")
	claim := create(rec, store.InProgress)
	r.mustApply(claim)
	take := takeover(claim.To)
	r.mustApply(take)
	winner = claim.To
	winner.Token = take.To.Token
	return claim.To, winner
}

// takeover is the change that takes over from a leader whose lease has expired.
func takeover(from store.Record) store.Change {
	take := move(from, token(store.InProgress, from.Attempt+1))
	take.IfDue, take.To.Due = true, farAhead
	return take
}

func zombieHeartbeat(r *harness) {
	zombie, winner := r.mustTakeOver()
	beat := move(zombie, zombie.Token)
	for range 2 {
		beat.To.Due = 3 * farAhead
		r.mustReject(beat, winner.Token)
	}
	if got := r.mustRead(zombie.ID).Due; !near(got, farAhead) {
		r.Errorf("after a zombie's heartbeat of %v the winner's lease of %v reads %v", 3*farAhead, farAhead, got)
	}
	finish := move(winner, token(store.Succeeded, 2))
	r.mustApply(finish)
	r.mustReject(beat, finish.To.Token)
}

// checkZombieEnds tries to end a zombie's attempt in these states, while its winner
// runs and after the winner has ended.
func (r *harness) checkZombieEnds(states ...store.State) {
	r.Helper()
	for _, state := range states {
		zombie, winner := r.mustTakeOver()
		end := move(zombie, store.Token{State: state, Attempt: 1, Owner: zombie.Owner})
		end.To.Outcome, end.To.Input, end.To.Tainted = []byte("the zombie's"), []byte("the zombie's"), true
		r.mustReject(end, winner.Token)
		r.mustHoldRecord(winner)

		finish := move(winner, store.Token{State: store.Succeeded, Attempt: 2, Owner: winner.Owner})
		finish.To.Outcome = []byte("the winner's")
		r.mustApply(finish)
		r.mustReject(end, finish.To.Token)
		want := winner
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustHoldRecord(want)
	}
}

// A late retry of a claim, whose first reply was lost, does not undo a later claim.
func zombieClaim(r *harness) {
	rec := r.fresh()
	claim := create(rec, store.InProgress)
	r.mustApply(claim)
	take := takeover(claim.To)
	r.mustApply(take)
	r.mustReject(claim, take.To.Token)
	again := takeover(take.To)
	again.IfDue = false // as after a decision of an operator
	r.mustApply(again)
	r.mustReject(take, again.To.Token)
}

// Neither an end nor a heartbeat of a zombie restores a purged record. A new record
// of the key is another record, although its attempt numbers start again.
func zombieAfterPurge(r *harness) {
	zombie, winner := r.mustTakeOver()
	finish := move(winner, token(store.Succeeded, 2))
	finish.To.Expire = -1
	r.mustApply(finish)
	r.mustPurge(10, 1)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner})
	for _, late := range []store.Change{beat, end, takeover(zombie)} {
		r.mustReject(late, store.Token{})
		r.mustBeAbsent(zombie.ID)
	}
	anew := create(zombie, store.InProgress)
	r.mustApply(anew)
	r.mustReject(beat, anew.To.Token)
	r.mustReject(end, anew.To.Token)
}

// A zombie's superseded end rolls back its effect, with and without the right to
// the record.
func zombieCompletesTx[Tx any](r *txHarness[Tx]) {
	for _, hold := range []bool{false, true} {
		for _, state := range []store.State{store.Succeeded, store.Failed, store.Pending} {
			zombie, winner := r.mustTakeOver()
			end := move(zombie, store.Token{State: state, Attempt: 1, Owner: zombie.Owner})
			r.mustSupersede(zombie.ID, hold, r.effectThen("effect", &end, nil))
			r.mustHoldRecord(winner)
			r.mustHaveEffects("effect", 0)
		}
	}
}

// A zombie's writes in a transaction are not applied.
func zombieWritesTx[Tx any](r *txHarness[Tx]) {
	zombie, winner := r.mustTakeOver()
	last := create(r.fresh(), store.Succeeded)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner})
	beat.To.Due = 3 * farAhead
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		for _, late := range []store.Change{beat, end} {
			r.checkRejected(late, r.swapTx(ctx, tx, late)[0], winner.Token)
		}
		return &last, nil
	})
	r.mustHoldRecord(winner)
	if got := r.mustRead(zombie.ID).Due; !near(got, farAhead) {
		r.Errorf("after a zombie's heartbeat of %v the winner's lease of %v reads %v", 3*farAhead, farAhead, got)
	}
}

// A leader that is taken over while its transaction is open finds out at the end of
// the transaction.
func zombieTakenOverInside[Tx any](r *txHarness[Tx]) {
	if r.caps.Exclusion == store.ExcludesAll {
		r.Skip("Capabilities say Exclusive")
	}
	claim := create(r.fresh(), store.InProgress)
	r.mustApply(claim)
	take := takeover(claim.To)
	finish := move(claim.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: claim.To.Owner})
	r.mustSupersede(claim.To.ID, false, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
		if current.Token != claim.To.Token {
			r.Errorf("run gets %s, want %s", showAnswer(current), showToken(claim.To.Token))
		}
		r.addEffect(ctx, tx, "effect")
		r.mustApply(take)
		return &finish, nil
	})
	r.mustHaveEffects("effect", 0)
	if got := r.mustRead(claim.To.ID).Token; got != take.To.Token {
		r.Errorf("%s is current, want %s", showToken(got), showToken(take.To.Token))
	}
}
