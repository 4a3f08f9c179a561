package storetest

import (
	"time"

	"github.com/semelgo/semel/store"
)

func heartbeatChecks() []storeCheck {
	return []storeCheck{
		{"MovesDue", heartbeatMovesDue},
		{"EndsLease", heartbeatEndsLease},
		{"Late", heartbeatLate},
		{"KeepsToken", heartbeatKeepsToken},
		{"ChangesTimesOnly", heartbeatChangesTimesOnly},
		{"WrongOwner", heartbeatOfWrongOwner},
	}
}

func heartbeatMovesDue(r *harness) {
	rec := r.fresh()
	rec.Due = farAhead
	c := create(rec, store.InProgress)
	r.mustApply(c)
	r.beat(c.To, 2*farAhead)
	if got := r.mustRead(rec.ID).Due; !near(got, 2*farAhead) {
		r.Errorf("after a heartbeat of %v, Due = %v", 2*farAhead, got)
	}
}

func (r *harness) beat(rec store.Record, due time.Duration) {
	r.Helper()
	beat := move(rec, rec.Token)
	beat.To.Due = due
	r.mustApply(beat)
}

// A heartbeat with a lease of zero ends the lease.
func heartbeatEndsLease(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	r.beat(rec, 0)
	if got := r.mustRead(rec.ID).Due; got > 0 {
		r.Errorf("after a heartbeat of 0, Due = %v, want it to have come", got)
	}
}

// The store does not decide whether an expired lease may be renewed.
func heartbeatLate(r *harness) {
	rec := r.fresh()
	rec.Due = -farAhead
	c := create(rec, store.InProgress)
	r.mustApply(c)
	r.beat(c.To, farAhead)
	if got := r.mustRead(rec.ID).Due; !near(got, farAhead) {
		r.Errorf("after a late heartbeat of %v, Due = %v", farAhead, got)
	}
}

// The leader's own heartbeats never prevent its end.
func heartbeatKeepsToken(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	finish := move(rec, store.Token{State: store.Succeeded, Attempt: 1, Owner: rec.Owner})
	r.beat(rec, farAhead)
	r.beat(rec, farAhead)
	r.mustApply(finish)
}

// A heartbeat built from an old record overwrites no other field.
func heartbeatChangesTimesOnly(r *harness) {
	rec := r.fresh()
	rec.Due, rec.Tainted, rec.Input, rec.Outcome = farAhead, true, []byte("input"), []byte("outcome")
	c := create(rec, store.InProgress)
	r.mustApply(c)
	beat := move(c.To, c.To.Token)
	beat.To.Due, beat.To.Tainted = farAhead, false
	beat.To.Input, beat.To.Outcome = []byte("old input"), []byte("old outcome")
	r.mustApply(beat)
	r.mustHoldRecord(c.To)
}

func heartbeatOfWrongOwner(r *harness) {
	rec := r.mustCreateIn(store.InProgress)
	for _, zombie := range []store.Token{
		{State: store.InProgress, Attempt: 1, Owner: rec.Owner + 1},
		{State: store.InProgress, Attempt: 2, Owner: rec.Owner},
	} {
		old := rec
		old.Token = zombie
		beat := move(old, zombie)
		beat.To.Due = 3 * farAhead
		r.mustReject(beat, rec.Token)
	}
	if got := r.mustRead(rec.ID).Due; got > farAhead+clockSlack {
		r.Errorf("a heartbeat of another owner moved Due to %v", got)
	}
}
