package semeltest

import (
	"slices"
	"time"

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
		{"Anew", purgeAnew},
	}
}

// mustPurge calls Purge and requires how many go.
func (r *rig) mustPurge(limit, want int) {
	r.Helper()
	got, err := r.store.Purge(r.ctx, limit)
	if err != nil || got != want {
		r.Errorf("Purge(%d) = %d, %v, want %d", limit, got, err, want)
	}
}

// expiring lets a fresh record stand with an Expire.
func (r *rig) expiring(state store.State, expire time.Duration) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Expire = expire
	c := create(rec, state)
	r.mustForce(c)
	return c.To
}

// Every final or Pending record is removed after its Expire.
func purgeExpired(r *rig) {
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

// A time that was to come comes.
func purgeLater(r *rig) {
	rec := r.expiring(store.Succeeded, r.soon())
	r.pass(rec.ID, isExpired)
	r.mustPurge(10, 1)
	r.mustBeAbsent(rec.ID)
}

func purgeNotYet(r *rig) {
	rec := r.expiring(store.Succeeded, long)
	r.mustPurge(10, 0)
	r.mustStand(rec)
}

// Expire zero is never.
func purgeNever(r *rig) {
	for _, state := range []store.State{store.Pending, store.Succeeded, store.Failed} {
		rec := r.expiring(state, 0)
		r.pass(rec.ID, r.aged)
		r.mustPurge(10, 0)
		r.mustStand(rec)
	}
}

// InProgress and InDoubt records are never removed, even if they were written with
// an Expire.
func purgeUnfinished(r *rig) {
	for _, state := range []store.State{store.InProgress, store.InDoubt} {
		rec := r.expiring(state, -time.Second)
		r.mustPurge(10, 0)
		r.mustStand(rec)
	}
}

// An expired record that is claimed does not expire any more.
func purgeClaimedAgain(r *rig) {
	released := r.expiring(store.Pending, -time.Second)
	claim := move(released, token(store.InProgress, 2))
	r.mustForce(claim)
	r.mustPurge(10, 0)
	if got := r.mustRead(released.ID).Token; got != claim.To.Token {
		r.Errorf("%s stands, want %s", showToken(got), showToken(claim.To.Token))
	}
}

// An Expire that had come is over once the record goes on, and does not come back
// when it rests again.
func purgeExpiredBefore(r *rig) {
	for _, state := range []store.State{store.Pending, store.Succeeded, store.Failed} {
		c := create(r.fresh(), state)
		c.To.Expire = -time.Second
		r.mustForce(c)
		for _, next := range []store.State{store.InDoubt, store.InProgress, store.Pending, store.Failed} {
			c = move(c.To, token(next, c.To.Attempt))
			r.mustForce(c)
			r.mustPurge(10, 0)
			if got := r.mustRead(c.To.ID); got.Token != c.To.Token || got.Expire != 0 {
				r.Errorf("%s stands with Expire %v, want %s without", showToken(got.Token), got.Expire, showToken(c.To.Token))
			}
		}
	}
}

// A limit is kept to, however many records go.
func purgeMany(r *rig) {
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

func purgeLimit(r *rig) {
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

// A purged key is a new one: nothing of it is left.
func purgeAnew(r *rig) {
	old := r.expiring(store.Succeeded, -time.Second)
	r.mustPurge(10, 1)
	r.mustRefuse(move(old, token(store.Failed, 1)), store.Token{})
	anew := old
	anew.Fingerprint, anew.Outcome, anew.Expire = []byte("another"), nil, 0
	c := create(anew, store.InProgress)
	r.mustForce(c)
	r.mustStand(c.To)
}
