package storetest

import (
	"slices"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func purgeChecks() []storeCheck {
	return []storeCheck{
		{"Expired", purgeExpired},
		{"Later", purgeLater},
		{"NotYet", purgeNotYet},
		{"Never", purgeNever},
		{"Unfinished", purgeUnfinished},
		{"ClaimedAgain", purgeClaimedAgain},
		{"ExpiredBefore", purgeExpiredBefore},
		{"Limit", purgeLimit},
		{"Many", purgeMany},
		{"CreatedAgain", purgeThenCreate},
	}
}

// mustPurge calls Purge and requires how many records it removes.
func (r *harness) mustPurge(limit, want int) {
	r.Helper()
	got, err := r.store.Purge(r.ctx, limit)
	check.Result(got, err)(r, want, "Purge(%d)", limit)
}

// expiring creates a record with an Expire.
func (r *harness) expiring(state store.State, expire time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Expire = expire
	c := create(rec, state)
	r.mustApply(c)
	return c.To
}

// Every final or Pending record is removed after its Expire.
func purgeExpired(r *harness) {
	for _, state := range []store.State{store.Pending, store.Succeeded, store.Failed} {
		rec := r.expiring(state, -time.Second)
		if got := r.mustRead(rec.ID).Expire; got >= 0 {
			r.Errorf("Expire that has come reads %v, want less than zero", got)
		}
		r.mustPurge(10, 1)
		r.mustBeAbsent(rec.ID)
	}
	r.mustPurge(10, 0)
}

// A record expires when its time has come.
func purgeLater(r *harness) {
	rec := r.expiring(store.Succeeded, r.shortTime())
	r.passTime(rec.ID, isExpired)
	r.mustPurge(10, 1)
	r.mustBeAbsent(rec.ID)
}

func purgeNotYet(r *harness) {
	rec := r.expiring(store.Succeeded, farAhead)
	r.mustPurge(10, 0)
	r.mustHoldRecord(rec)
}

// An Expire of zero means never.
func purgeNever(r *harness) {
	for _, state := range []store.State{store.Pending, store.Succeeded, store.Failed} {
		rec := r.expiring(state, 0)
		r.passTime(rec.ID, r.aged)
		r.mustPurge(10, 0)
		r.mustHoldRecord(rec)
	}
}

// InProgress and InDoubt records are never removed, even if they were written with
// an Expire.
func purgeUnfinished(r *harness) {
	for _, state := range []store.State{store.InProgress, store.InDoubt} {
		rec := r.expiring(state, -time.Second)
		r.mustPurge(10, 0)
		r.mustHoldRecord(rec)
	}
}

// An expired record that is claimed does not expire any more.
func purgeClaimedAgain(r *harness) {
	released := r.expiring(store.Pending, -time.Second)
	claim := move(released, token(store.InProgress, 2))
	r.mustApply(claim)
	r.mustPurge(10, 0)
	if got := r.mustRead(released.ID).Token; got != claim.To.Token {
		r.Errorf("%s is current, want %s", showToken(got), showToken(claim.To.Token))
	}
}

// An Expire that has passed is dropped when the record continues, and does not
// return when the record is final again.
func purgeExpiredBefore(r *harness) {
	for _, state := range []store.State{store.Pending, store.Succeeded, store.Failed} {
		c := create(r.fresh(), state)
		c.To.Expire = -time.Second
		r.mustApply(c)
		for _, next := range []store.State{store.InDoubt, store.InProgress, store.Pending, store.Failed} {
			c = move(c.To, token(next, c.To.Attempt))
			r.mustApply(c)
			r.mustPurge(10, 0)
			if got := r.mustRead(c.To.ID); got.Token != c.To.Token || got.Expire != 0 {
				r.Errorf("%s is current with Expire %v, want %s without", showToken(got.Token), got.Expire, showToken(c.To.Token))
			}
		}
	}
}

// Purge keeps to its limit, however many records have expired.
func purgeMany(r *harness) {
	const n = 700
	changes := make([]store.Change, n)
	for i := range changes {
		changes[i] = create(r.fresh(), store.Succeeded)
		changes[i].To.Expire = -time.Second
	}
	for batch := range slices.Chunk(changes, min(r.caps.MaxBatch, n)) {
		r.swap(batch...)
	}
	r.mustPurge(600, 600)
	r.mustPurge(600, n-600)
}

func purgeLimit(r *harness) {
	for range 5 {
		r.expiring(store.Succeeded, -time.Second)
	}
	kept := r.expiring(store.Succeeded, 0)
	r.mustPurge(2, 2)
	r.mustPurge(2, 2)
	r.mustPurge(2, 1)
	r.mustPurge(2, 0)
	r.mustFind(store.Query{}, kept)
}

// A purged key is new: no field of the old record is left.
func purgeThenCreate(r *harness) {
	old := r.expiring(store.Succeeded, -time.Second)
	r.mustPurge(10, 1)
	r.mustReject(move(old, token(store.Failed, 1)), store.Token{})
	anew := old
	anew.Fingerprint, anew.Outcome, anew.Expire = []byte("another"), nil, 0
	c := create(anew, store.InProgress)
	r.mustApply(c)
	r.mustHoldRecord(c.To)
}
