package semeltest

import (
	"github.com/semelgo/semel/store"
)

// sweepChecks are about a sweeper, which acts on a list that may be old.
func sweepChecks() []storeCheck {
	return []storeCheck{
		{"AgainstHeartbeat", sweepAgainstHeartbeat},
		{"AgainstTakeover", sweepAgainstTakeover},
		{"AgainstClaim", sweepAgainstClaim},
		{"AgainstFinish", sweepAgainstFinish},
		{"Twice", sweepTwice},
	}
}

// listed lets a due record stand in the state, and returns it as a list of what
// is due shows it.
func (r *rig) listed(state store.State) store.Record {
	r.Helper()
	c := create(r.fresh(), state)
	r.mustForce(c)
	for _, rec := range r.scan(store.Query{Due: true, State: state, Limit: store.MaxLimit}) {
		if rec.ID == c.To.ID {
			return rec
		}
	}
	r.Fatalf("a due %v record is not on the list of what is due", state)
	return store.Record{}
}

// sweeps are what a sweeper does to a leader's record whose lease is over.
func sweeps(rec store.Record) []store.Change {
	requeue, doubt := move(rec, token(store.Pending, rec.Attempt)), move(rec, token(store.InDoubt, rec.Attempt))
	requeue.IfDue, doubt.IfDue = true, true
	return []store.Change{requeue, doubt}
}

// A lease that was renewed after the list was made is not swept. The token is
// the same: only the store's clock can tell.
func sweepAgainstHeartbeat(r *rig) {
	rec := r.listed(store.InProgress)
	r.beat(rec, long)
	for _, sweep := range sweeps(rec) {
		r.mustRefuse(sweep, rec.Token)
	}
	if got := r.mustRead(rec.ID); got.Token != rec.Token || !near(got.Due, long) {
		r.Errorf("%s stands with Due %v, want the leader with its new lease of %v", showToken(got.Token), got.Due, long)
	}
}

func sweepAgainstTakeover(r *rig) {
	rec := r.listed(store.InProgress)
	take := takeover(rec)
	take.To.Due = 0 // over as soon, and still not the lease that was listed
	r.mustForce(take)
	for _, sweep := range sweeps(rec) {
		r.mustRefuse(sweep, take.To.Token)
	}
	r.mustForce(sweeps(take.To)[0])
}

// A queued record that was claimed is not cancelled, put off or queued anew by a
// list that shows it as waiting.
func sweepAgainstClaim(r *rig) {
	rec := r.listed(store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	claim.IfDue = true
	r.mustForce(claim)
	for _, state := range []store.State{store.Pending, store.Failed} {
		sweep := move(rec, token(state, 1))
		sweep.IfDue, sweep.To.Due = true, long
		r.mustRefuse(sweep, claim.To.Token)
	}
	if got := r.mustRead(rec.ID).Token; got != claim.To.Token {
		r.Errorf("%s stands, want %s", showToken(got), showToken(claim.To.Token))
	}
}

// What has ended does not begin again because a list shows it as running.
func sweepAgainstFinish(r *rig) {
	for _, state := range []store.State{store.Succeeded, store.Failed} {
		rec := r.listed(store.InProgress)
		finish := move(rec, store.Token{State: state, Attempt: 1, Owner: rec.Owner})
		finish.To.Outcome = []byte("the end")
		r.mustForce(finish)
		for _, sweep := range append(sweeps(rec), takeover(rec)) {
			r.mustRefuse(sweep, finish.To.Token)
		}
		want := rec
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustStand(want)
	}
}

// Of two sweepers with the same list one sweeps, and the other gets the first one's
// record.
func sweepTwice(r *rig) {
	rec := r.listed(store.InProgress)
	mine := sweeps(rec)[0]
	r.mustForce(mine)
	for _, theirs := range sweeps(rec) {
		r.mustRefuse(theirs, mine.To.Token)
	}
	r.mustStand(mine.To)
}
