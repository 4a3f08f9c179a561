package storetest

import (
	"github.com/semelgo/semel/store"
)

// sweepChecks test a sweeper, which acts on a list that may be outdated.
func sweepChecks() []storeCheck {
	return []storeCheck{
		{"AgainstHeartbeat", sweepAgainstHeartbeat},
		{"AgainstTakeover", sweepAgainstTakeover},
		{"AgainstClaim", sweepAgainstClaim},
		{"AgainstFinish", sweepAgainstFinish},
		{"Twice", sweepTwice},
	}
}

// listed creates a due record in the state, and returns it as a list of due records
// shows it.
func (r *harness) listed(state store.State) store.Record {
	r.Helper()
	c := create(r.fresh(), state)
	r.mustApply(c)
	for _, rec := range r.scan(store.Query{Due: true, State: state, Limit: store.MaxLimit}) {
		if rec.ID == c.To.ID {
			return rec
		}
	}
	r.Fatalf("a due %v record is not on the list of what is due", state)
	return store.Record{}
}

// sweeps are the changes that a sweeper makes to an expired record.
func sweeps(rec store.Record) []store.Change {
	requeue, doubt := move(rec, token(store.Pending, rec.Attempt)), move(rec, token(store.InDoubt, rec.Attempt))
	requeue.IfDue, doubt.IfDue = true, true
	return []store.Change{requeue, doubt}
}

// A lease that was renewed after the list was made is not swept. The token is
// the same: only the store's clock can tell.
func sweepAgainstHeartbeat(r *harness) {
	rec := r.listed(store.InProgress)
	r.beat(rec, farAhead)
	for _, sweep := range sweeps(rec) {
		r.mustReject(sweep, rec.Token)
	}
	if got := r.mustRead(rec.ID); got.Token != rec.Token || !near(got.Due, farAhead) {
		r.Errorf("%s is current with Due %v, want the leader with its new lease of %v", showToken(got.Token), got.Due, farAhead)
	}
}

func sweepAgainstTakeover(r *harness) {
	rec := r.listed(store.InProgress)
	take := takeover(rec)
	take.To.Due = 0 // as expired as the listed lease, but another one
	r.mustApply(take)
	for _, sweep := range sweeps(rec) {
		r.mustReject(sweep, take.To.Token)
	}
	r.mustApply(sweeps(take.To)[0])
}

// A queued record that was claimed is not cancelled, postponed or queued again by a
// list that shows it as waiting.
func sweepAgainstClaim(r *harness) {
	rec := r.listed(store.Pending)
	claim := move(rec, token(store.InProgress, 2))
	claim.IfDue = true
	r.mustApply(claim)
	for _, state := range []store.State{store.Pending, store.Failed} {
		sweep := move(rec, token(state, 1))
		sweep.IfDue, sweep.To.Due = true, farAhead
		r.mustReject(sweep, claim.To.Token)
	}
	if got := r.mustRead(rec.ID).Token; got != claim.To.Token {
		r.Errorf("%s is current, want %s", showToken(got), showToken(claim.To.Token))
	}
}

// A finished record does not start again because a list shows it as running.
func sweepAgainstFinish(r *harness) {
	for _, state := range []store.State{store.Succeeded, store.Failed} {
		rec := r.listed(store.InProgress)
		finish := move(rec, store.Token{State: state, Attempt: 1, Owner: rec.Owner})
		finish.To.Outcome = []byte("the end")
		r.mustApply(finish)
		for _, sweep := range append(sweeps(rec), takeover(rec)) {
			r.mustReject(sweep, finish.To.Token)
		}
		want := rec
		want.Token, want.Outcome = finish.To.Token, finish.To.Outcome
		r.mustHoldRecord(want)
	}
}

// Of two sweepers with the same list one sweeps, and the other gets the first one's
// record.
func sweepTwice(r *harness) {
	rec := r.listed(store.InProgress)
	mine := sweeps(rec)[0]
	r.mustApply(mine)
	for _, theirs := range sweeps(rec) {
		r.mustReject(theirs, mine.To.Token)
	}
	r.mustHoldRecord(mine.To)
}
