package semeltest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// zombieChecks are about a leader that was taken over and does not know it:
// nothing that it writes comes in force.
func zombieChecks() []storeCheck {
	return []storeCheck{
		{"Heartbeat", zombieHeartbeat},
		{"Complete", func(r *rig) { r.zombieEnds(store.Succeeded, store.Failed) }},
		{"Release", func(r *rig) { r.zombieEnds(store.Pending) }},
		{"Doubt", func(r *rig) { r.zombieEnds(store.InDoubt) }},
		{"Claim", zombieClaim},
		{"AfterPurge", zombieAfterPurge},
	}
}

// zombieTxChecks are about one that writes in a transaction.
func zombieTxChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Complete", zombieCompletesTx[Tx]},
		check[Tx]{"Write", zombieWritesTx[Tx]},
		check[Tx]{"TakenOverInside", zombieTakenOverInside[Tx]},
	)
}

// takenOver lets a leader's lease expire and another caller take over. It returns
// the record as the zombie knows it, and the current one.
func (r *rig) takenOver() (zombie, winner store.Record) {
	r.Helper()
	rec := r.fresh()
	rec.Input, rec.Outcome = []byte("input"), []byte("progress")
	claim := create(rec, store.InProgress)
	r.mustForce(claim)
	take := takeover(claim.To)
	r.mustForce(take)
	winner = claim.To
	winner.Token = take.To.Token
	return claim.To, winner
}

// takeover is the change that takes over from a leader whose lease is over.
func takeover(from store.Record) store.Change {
	take := move(from, token(store.InProgress, from.Attempt+1))
	take.IfDue, take.To.Due = true, long
	return take
}

func zombieHeartbeat(r *rig) {
	zombie, winner := r.takenOver()
	beat := move(zombie, zombie.Token)
	for range 2 {
		beat.To.Due = 3 * long
		r.mustRefuse(beat, winner.Token)
	}
	if got := r.mustRead(zombie.ID).Due; !near(got, long) {
		r.Errorf("after a zombie's heartbeat of %v the winner's lease of %v reads %v", 3*long, long, got)
	}
	finish := move(winner, token(store.Succeeded, 2))
	r.mustForce(finish)
	r.mustRefuse(beat, finish.To.Token)
}

// zombieEnds tries to end a zombie's attempt in these states, as long as its
// winner runs, and once it has ended.
func (r *rig) zombieEnds(states ...store.State) {
	r.Helper()
	for _, state := range states {
		zombie, winner := r.takenOver()
		end := move(zombie, store.Token{State: state, Attempt: 1, Owner: zombie.Owner})
		end.To.Outcome, end.To.Input, end.To.Tainted = []byte("the zombie's"), []byte("the zombie's"), true
		r.mustRefuse(end, winner.Token)
		r.mustStand(winner)

		finish := move(winner, store.Token{State: store.Succeeded, Attempt: 2, Owner: winner.Owner})
		finish.To.Outcome = []byte("the winner's")
		r.mustForce(finish)
		r.mustRefuse(end, finish.To.Token)
		want := winner
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustStand(want)
	}
}

// A claim that comes late, because its first answer was lost, takes nothing back.
func zombieClaim(r *rig) {
	rec := r.fresh()
	claim := create(rec, store.InProgress)
	r.mustForce(claim)
	take := takeover(claim.To)
	r.mustForce(take)
	r.mustRefuse(claim, take.To.Token)
	again := takeover(take.To)
	again.IfDue = false // an operator resolved it
	r.mustForce(again)
	r.mustRefuse(take, again.To.Token)
}

// What was purged does not come back, neither by an end nor by a heartbeat, and
// a new record of the key is not the old one, though its attempts count anew.
func zombieAfterPurge(r *rig) {
	zombie, winner := r.takenOver()
	finish := move(winner, token(store.Succeeded, 2))
	finish.To.Expire = -1
	r.mustForce(finish)
	r.mustPurge(10, 1)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner})
	for _, late := range []store.Change{beat, end, takeover(zombie)} {
		r.mustRefuse(late, store.Token{})
		r.mustBeAbsent(zombie.ID)
	}
	anew := create(zombie, store.InProgress)
	r.mustForce(anew)
	r.mustRefuse(beat, anew.To.Token)
	r.mustRefuse(end, anew.To.Token)
}

// A zombie's end as the last change of its transaction takes its effect with it,
// with the right to the record or without.
func zombieCompletesTx[Tx any](r *txRig[Tx]) {
	for _, hold := range []bool{false, true} {
		for _, state := range []store.State{store.Succeeded, store.Failed, store.Pending} {
			zombie, winner := r.takenOver()
			end := move(zombie, store.Token{State: state, Attempt: 1, Owner: zombie.Owner})
			r.mustRaise(zombie.ID, hold, r.ending("effect", &end, nil))
			r.mustStand(winner)
			r.mustEffects("effect", 0)
		}
	}
}

// A zombie's writes in a transaction are not applied.
func zombieWritesTx[Tx any](r *txRig[Tx]) {
	zombie, winner := r.takenOver()
	last := create(r.fresh(), store.Succeeded)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: zombie.Owner})
	beat.To.Due = 3 * long
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		for _, late := range []store.Change{beat, end} {
			r.refused(late, r.swapTx(ctx, tx, late)[0], winner.Token)
		}
		return &last, nil
	})
	r.mustStand(winner)
	if got := r.mustRead(zombie.ID).Due; !near(got, long) {
		r.Errorf("after a zombie's heartbeat of %v the winner's lease of %v reads %v", 3*long, long, got)
	}
}

// A leader that is taken over while its transaction is open finds out at the end of
// the transaction.
func zombieTakenOverInside[Tx any](r *txRig[Tx]) {
	if r.caps.SingleWriter {
		r.Skip("Capabilities say Exclusive")
	}
	claim := create(r.fresh(), store.InProgress)
	r.mustForce(claim)
	take := takeover(claim.To)
	finish := move(claim.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: claim.To.Owner})
	r.mustRaise(claim.To.ID, false, func(ctx context.Context, tx Tx, stands store.SwapResult) (*store.Change, error) {
		if stands.Token != claim.To.Token {
			r.Errorf("run is told %s, want %s", showAnswer(stands), showToken(claim.To.Token))
		}
		r.act(ctx, tx, "effect")
		r.mustForce(take)
		return &finish, nil
	})
	r.mustEffects("effect", 0)
	if got := r.mustRead(claim.To.ID).Token; got != take.To.Token {
		r.Errorf("%s stands, want %s", showToken(got), showToken(take.To.Token))
	}
}
