package semeltest

import (
	"time"

	"github.com/semelgo/semel/store"
)

func timeChecks() []storeCheck {
	return []storeCheck{
		{"IfDue", ifDue},
		{"IfDueNow", ifDueNow},
		{"Relative", timesAreRelative},
		{"GoOn", timesGoOn},
		{"OtherStates", otherStatesHaveNone},
		{"ExpireNever", expireNever},
		{"Since", sinceIsOfTheToken},
		{"HeartbeatKeepsSince", heartbeatKeepsSince},
		{"Age", ageIsOfTheCreate},
	}
}

// With IfDue a change is made from the moment on that Due has come.
func ifDue(r *rig) {
	for _, state := range []store.State{store.Pending, store.InProgress} {
		early := r.stand(state)
		take := move(early, token(store.InProgress, 2))
		take.IfDue = true
		r.mustRefuse(take, early.Token)
		r.mustStand(early)
		take.IfDue = false
		r.mustForce(take)

		late := r.fresh()
		late.Due = r.soon()
		c := create(late, state)
		r.mustForce(c)
		r.pass(late.ID, isDue)
		take = move(c.To, token(store.InProgress, 2))
		take.IfDue = true
		r.mustForce(take)
	}
}

// Zero or less: the time has come.
func ifDueNow(r *rig) {
	for _, due := range []time.Duration{0, -1, -long} {
		rec := r.fresh()
		rec.Due = due
		c := create(rec, store.Pending)
		r.mustForce(c)
		if got := r.mustRead(rec.ID).Due; got > 0 {
			r.Errorf("Due written as %v reads %v, want it to have come", due, got)
		}
		take := move(c.To, token(store.InProgress, 2))
		take.IfDue = true
		r.mustForce(take)
	}
}

// Times are written and read relative to the store's now.
func timesAreRelative(r *rig) {
	for _, d := range []time.Duration{long, 30 * 24 * long, -long} {
		rec := r.fresh()
		rec.Due, rec.Expire = d, d
		c := create(rec, store.Pending)
		r.mustForce(c)
		for _, got := range []store.Record{r.mustRead(rec.ID), r.shown(c.To)} {
			if !near(got.Due, d) || !near(got.Expire, d) || !recent(got.Age) || !recent(got.Since) {
				r.Errorf("written with Due and Expire %v, it reads Due %v, Expire %v, Age %v, Since %v",
					d, got.Due, got.Expire, got.Age, got.Since)
			}
		}
	}
}

// As time goes on, less is left and more has gone by.
func timesGoOn(r *rig) {
	rec := r.fresh()
	rec.Due, rec.Expire = long, 2*long
	c := create(rec, store.Pending)
	r.mustForce(c)
	r.pass(rec.ID, r.aged)
	got := r.mustRead(rec.ID)
	soon := r.soon()
	if got.Due > long-soon/2 || got.Expire > 2*long-soon/2 || got.Age < soon || got.Since < soon {
		r.Errorf("%v later it reads Due %v, Expire %v, Age %v, Since %v", soon, got.Due, got.Expire, got.Age, got.Since)
	}
}

// States that are not waited for have no Due, and those that are unfinished do
// not expire.
func otherStatesHaveNone(r *rig) {
	for _, state := range store.States() {
		rec := r.fresh()
		rec.Due, rec.Expire = long, long
		c := create(rec, state)
		r.mustForce(c)
		got := r.mustRead(rec.ID)
		if waits := state == store.Pending || state == store.InProgress; waits != (got.Due != 0) {
			r.Errorf("%v written with Due %v reads %v", state, long, got.Due)
		}
		if state.Unfinished() != (got.Expire == 0) {
			r.Errorf("%v written with Expire %v reads %v", state, long, got.Expire)
		}
	}
}

// Expire written as zero is never, also where a time stood before.
func expireNever(r *rig) {
	rec := r.fresh()
	rec.Expire = long
	c := create(rec, store.Pending)
	r.mustForce(c)
	finish := move(c.To, token(store.Succeeded, 1))
	r.mustForce(finish)
	if got := r.mustRead(rec.ID).Expire; got != 0 {
		r.Errorf("Expire written as 0 reads %v, want 0", got)
	}
}

// Since counts from the last change of the token.
func sinceIsOfTheToken(r *rig) {
	rec := r.stand(store.Pending)
	r.pass(rec.ID, r.aged)
	r.mustForce(move(rec, token(store.InProgress, 2)))
	if got := r.mustRead(rec.ID); got.Age-got.Since < r.soon()/2 {
		r.Errorf("claimed %v after it was created, Age is %v and Since %v", r.soon(), got.Age, got.Since)
	}
}

func heartbeatKeepsSince(r *rig) {
	rec := r.stand(store.InProgress)
	r.pass(rec.ID, r.aged)
	r.beat(rec, long)
	if got := r.mustRead(rec.ID).Since; got < r.soon() {
		r.Errorf("%v after the claim, and after a heartbeat, Since is %v, want it to count from the claim", r.soon(), got)
	}
}

// Age counts from the create, through all later changes.
func ageIsOfTheCreate(r *rig) {
	rec := r.stand(store.Pending)
	r.pass(rec.ID, r.aged)
	claim := move(rec, token(store.InProgress, 2))
	r.mustForce(claim)
	r.mustForce(move(claim.To, token(store.Succeeded, 2)))
	if got := r.mustRead(rec.ID).Age; got < r.soon() {
		r.Errorf("%v after it was created Age is %v", r.soon(), got)
	}
}
