package semeltest

import (
	"time"

	"github.com/semelgo/semel/store"
)

func heartbeatChecks() []storeCheck {
	return []storeCheck{
		{"MovesDue", heartbeatMovesDue},
		{"GivesUp", heartbeatGivesUp},
		{"Late", heartbeatLate},
		{"KeepsToken", heartbeatKeepsToken},
		{"ChangesTimesOnly", heartbeatChangesTimesOnly},
		{"OfAnother", heartbeatOfAnother},
	}
}

func heartbeatMovesDue(r *rig) {
	rec := r.fresh()
	rec.Due = long
	c := create(rec, store.InProgress)
	r.mustForce(c)
	r.beat(c.To, 2*long)
	if got := r.mustRead(rec.ID).Due; !near(got, 2*long) {
		r.Errorf("after a heartbeat of %v, Due = %v", 2*long, got)
	}
}

func (r *rig) beat(rec store.Record, due time.Duration) {
	r.Helper()
	beat := move(rec, rec.Token)
	beat.To.Due = due
	r.mustForce(beat)
}

// A heartbeat to now gives the lease up.
func heartbeatGivesUp(r *rig) {
	rec := r.stand(store.InProgress)
	r.beat(rec, 0)
	if got := r.mustRead(rec.ID).Due; got > 0 {
		r.Errorf("after a heartbeat of 0, Due = %v, want it to have come", got)
	}
}

// Whether a lease that is over may be renewed is not for the store to say.
func heartbeatLate(r *rig) {
	rec := r.fresh()
	rec.Due = -long
	c := create(rec, store.InProgress)
	r.mustForce(c)
	r.beat(c.To, long)
	if got := r.mustRead(rec.ID).Due; !near(got, long) {
		r.Errorf("after a late heartbeat of %v, Due = %v", long, got)
	}
}

// The leader's own heartbeats never stand between it and its end.
func heartbeatKeepsToken(r *rig) {
	rec := r.stand(store.InProgress)
	finish := move(rec, store.Token{State: store.Succeeded, Attempt: 1, Owner: rec.Owner})
	r.beat(rec, long)
	r.beat(rec, long)
	r.mustForce(finish)
}

// A heartbeat built from an old reading overwrites nothing.
func heartbeatChangesTimesOnly(r *rig) {
	rec := r.fresh()
	rec.Due, rec.Tainted, rec.Input, rec.Outcome = long, true, []byte("input"), []byte("outcome")
	c := create(rec, store.InProgress)
	r.mustForce(c)
	beat := move(c.To, c.To.Token)
	beat.To.Due, beat.To.Tainted = long, false
	beat.To.Input, beat.To.Outcome = []byte("old input"), []byte("old outcome")
	r.mustForce(beat)
	r.mustStand(c.To)
}

func heartbeatOfAnother(r *rig) {
	rec := r.stand(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
	} {
		old := rec
		old.Token = zombie
		beat := move(old, zombie)
		beat.To.Due = 3 * long
		r.mustRefuse(beat, rec.Token)
	}
	if got := r.mustRead(rec.ID).Due; got > long+slack {
		r.Errorf("somebody else's heartbeat moved Due to %v", got)
	}
}
