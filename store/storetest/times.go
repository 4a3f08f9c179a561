package storetest

import (
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func timeChecks() []storeCheck {
	return []storeCheck{
		{"IfDue", ifDue},
		{"IfDueNow", ifDueNow},
		{"Relative", timesAreRelative},
		{"Elapse", timesElapse},
		{"OtherStates", otherStatesHaveNoDue},
		{"ExpireNever", expireNever},
		{"Since", sinceIsOfTheToken},
		{"HeartbeatKeepsSince", heartbeatKeepsSince},
		{"Age", ageIsOfTheCreate},
	}
}

// A change with IfDue is applied from the moment that Due has come.
func ifDue(r *harness) {
	for _, state := range []store.State{store.Pending, store.InProgress} {
		early := r.mustCreateIn(state)
		take := move(early, token(store.InProgress, 2))
		take.IfDue = true
		r.mustReject(take, early.Token)
		r.mustHoldRecord(early)
		take.IfDue = false
		r.mustApply(take)

		late := r.fresh()
		late.Due = r.shortTime()
		c := create(late, state)
		r.mustApply(c)
		r.passTime(late.ID, isDue)
		take = move(c.To, token(store.InProgress, 2))
		take.IfDue = true
		r.mustApply(take)
	}
}

// A Due of zero or less has come.
func ifDueNow(r *harness) {
	for _, due := range []time.Duration{0, -1, -farAhead} {
		rec := r.fresh()
		rec.Due = due
		c := create(rec, store.Pending)
		r.mustApply(c)
		if got := r.mustRead(rec.ID).Due; got > 0 {
			r.Errorf("Due written as %v reads %v, want it to have come", due, got)
		}
		take := move(c.To, token(store.InProgress, 2))
		take.IfDue = true
		r.mustApply(take)
	}
}

// Times are written and read relative to the store's now.
func timesAreRelative(r *harness) {
	for _, d := range []time.Duration{farAhead, 30 * 24 * farAhead, -farAhead} {
		rec := r.fresh()
		rec.Due, rec.Expire = d, d
		c := create(rec, store.Pending)
		r.mustApply(c)
		for _, got := range []store.Record{r.mustRead(rec.ID), r.mustReturnCurrent(c.To)} {
			if !near(got.Due, d) || !near(got.Expire, d) || !recent(got.Age) || !recent(got.Since) {
				r.Errorf("written with Due and Expire %v, it reads Due %v, Expire %v, Age %v, Since %v",
					d, got.Due, got.Expire, got.Age, got.Since)
			}
		}
	}
}

// With time, the remaining times shrink and the ages grow.
func timesElapse(r *harness) {
	rec := r.fresh()
	rec.Due, rec.Expire = farAhead, 2*farAhead
	c := create(rec, store.Pending)
	r.mustApply(c)
	r.passTime(rec.ID, r.aged)
	got := r.mustRead(rec.ID)
	soon := r.shortTime()
	if got.Due > farAhead-soon/2 || got.Expire > 2*farAhead-soon/2 || got.Age < soon || got.Since < soon {
		r.Errorf("%v later it reads Due %v, Expire %v, Age %v, Since %v", soon, got.Due, got.Expire, got.Age, got.Since)
	}
}

// States without a due time have no Due, and unfinished records do not expire.
func otherStatesHaveNoDue(r *harness) {
	for _, state := range store.States() {
		rec := r.fresh()
		rec.Due, rec.Expire = farAhead, farAhead
		c := create(rec, state)
		r.mustApply(c)
		got := r.mustRead(rec.ID)
		if waits := state == store.Pending || state == store.InProgress; waits != (got.Due != 0) {
			r.Errorf("%v written with Due %v reads %v", state, farAhead, got.Due)
		}
		if state.Unfinished() != (got.Expire == 0) {
			r.Errorf("%v written with Expire %v reads %v", state, farAhead, got.Expire)
		}
	}
}

// An Expire of zero means never, also if the record had an Expire before.
func expireNever(r *harness) {
	rec := r.fresh()
	rec.Expire = farAhead
	c := create(rec, store.Pending)
	r.mustApply(c)
	finish := move(c.To, token(store.Succeeded, 1))
	r.mustApply(finish)
	check.Equal(r, r.mustRead(rec.ID).Expire, 0, "Expire written as 0 reads")
}

// Since counts from the last change of the token.
func sinceIsOfTheToken(r *harness) {
	rec := r.mustCreateIn(store.Pending)
	r.passTime(rec.ID, r.aged)
	r.mustApply(move(rec, token(store.InProgress, 2)))
	if got := r.mustRead(rec.ID); got.Age-got.Since < r.shortTime()/2 {
		r.Errorf("claimed %v after it was created, Age is %v and Since %v", r.shortTime(), got.Age, got.Since)
	}
}

func heartbeatKeepsSince(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	r.passTime(rec.ID, r.aged)
	r.beat(rec, farAhead)
	if got := r.mustRead(rec.ID).Since; got < r.shortTime() {
		r.Errorf("%v after the claim, and after a heartbeat, Since is %v, want it to count from the claim", r.shortTime(), got)
	}
}

// Age counts from the create, through all later changes.
func ageIsOfTheCreate(r *harness) {
	rec := r.mustCreateIn(store.Pending)
	r.passTime(rec.ID, r.aged)
	claim := move(rec, token(store.InProgress, 2))
	r.mustApply(claim)
	r.mustApply(move(claim.To, token(store.Succeeded, 2)))
	if got := r.mustRead(rec.ID).Age; got < r.shortTime() {
		r.Errorf("%v after it was created Age is %v", r.shortTime(), got)
	}
}
