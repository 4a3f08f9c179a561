package semeltest

import (
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// What is handed out is what a Swap of the same claim lets stand, in all that a
// record keeps.
func queueFields(r *rig) {
	for i, tainted := range []bool{false, true} {
		out, twin := r.fresh(), r.fresh()
		for _, rec := range []*store.Record{&out, &twin} {
			rec.Token = token(store.Pending, uint32(7*i))
			rec.Priority, rec.Tainted, rec.Due = int8(3-4*i), tainted, -time.Minute
			rec.Input, rec.Outcome, rec.Fingerprint = []byte("\x00input"), []byte("progress"), []byte("\xff")
		}
		r.mustForce(store.Change{To: out})
		d := asking(10)
		r.mustDequeue(d, out)
		r.mustForce(store.Change{To: twin})
		r.mustForce(d.Claim(twin))
		r.mustStand(claimed(d, out))
		want, got := r.mustRead(twin.ID), r.mustRead(out.ID)
		want.ID, want.Key, want.Fingerprint = got.ID, got.Key, got.Fingerprint
		if diff := diffRecords(got, want); diff != "" {
			r.Errorf("a record that was handed out differs from one that was claimed (-want +got):\n%s", diff)
		}
		if !near(got.Due, long) || !near(want.Due, long) || got.Expire != 0 || !recent(got.Since) {
			r.Errorf("handed out for %v it reads Due %v, Expire %v, Since %v", long, got.Due, got.Expire, got.Since)
		}
	}
}

// What runs does not expire, though it would have while it waited.
func queueExpire(r *rig) {
	rec := r.fresh()
	rec.Token, rec.Expire = token(store.Pending, 1), -time.Second
	r.mustForce(store.Change{To: rec})
	d := asking(10)
	rec.Expire = 0
	r.mustDequeue(d, rec)
	r.mustPurge(10, 0)
	r.mustStand(claimed(d, rec))
}

// A record with an expired lease is not dequeued, because it may have had an
// effect, which the caller that takes over must know.
func queueLease(r *rig) {
	rec := r.waiting(0, 0)
	d := asking(10)
	d.Lease = -time.Second
	r.mustDequeue(d, rec)
	r.mustDequeue(asking(10))
	got := claimed(d, rec)
	r.mustStand(got)
	r.mustForce(takeover(got))
}

// A change with the token of the Pending record is superseded.
func queueOldToken(r *rig) {
	rec := r.waiting(0, 0)
	d := asking(10)
	r.mustDequeue(d, rec)
	got := claimed(d, rec)
	for _, late := range []store.Token{token(store.Pending, 0), token(store.Failed, 0), token(store.InProgress, 1)} {
		r.mustRefuse(move(rec, late), got.Token)
	}
	r.mustStand(got)
	finish := move(got, store.Token{State: store.Succeeded, Attempt: 1, Owner: d.Owner})
	r.mustForce(finish)
	r.mustDequeue(asking(10))
}

// A worker whose task was swept and handed out again can neither end nor prolong
// it, and what the next one writes is in force.
func queueZombie(r *rig) {
	rec := r.waiting(0, 0)
	first, second := asking(10), asking(10)
	first.Lease = -time.Second
	r.mustDequeue(first, rec)
	zombie := claimed(first, rec)
	sweep := sweeps(zombie)[0]
	r.mustForce(sweep)
	queued := zombie
	queued.Token = sweep.To.Token
	r.mustDequeue(second, queued)
	winner := claimed(second, queued)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: first.Owner})
	beat.To.Due = 3 * long
	for _, late := range []store.Change{beat, end} {
		r.mustRefuse(late, winner.Token)
	}
	r.beat(winner, 2*long)
	finish := move(winner, store.Token{State: store.Succeeded, Attempt: 2, Owner: second.Owner})
	r.mustForce(finish)
	r.mustRefuse(end, finish.To.Token)
}

// Asked again, the same is given, and nothing is claimed.
func queueAgain(r *rig) {
	var all []store.Record
	for i := range 5 {
		all = append(all, r.waiting(int8(-i), 0))
	}
	d := asking(3)
	r.mustDequeue(d, all[:3]...)
	other := asking(1)
	r.mustDequeue(other, all[3])
	d.Reread, other.Reread = true, true
	for range 2 {
		r.mustDequeue(d, all[:3]...)
	}
	r.mustDequeue(other, all[3])
	never := asking(3)
	never.Reread = true
	r.mustDequeue(never)
	r.mustStand(all[4])
}

// Asked again, what has gone on since is not given.
func queueAgainEnded(r *rig) {
	var all []store.Record
	for i := range 6 {
		all = append(all, r.waiting(int8(-i%5), 0))
	}
	d := asking(6)
	d.Lease = -time.Second
	got := r.dequeue(d)
	slices.SortFunc(got, func(a, b store.Record) int { return compareIDs(a.ID, b.ID) })
	if len(got) != len(all) {
		r.Fatalf("Dequeue gives %d records, want %d", len(got), len(all))
	}
	own := store.Token{Attempt: 1, Owner: d.Owner}
	for i, state := range []store.State{store.Succeeded, store.Failed, store.Pending, store.InDoubt} {
		end := own
		end.State = state
		r.mustForce(move(got[i], end))
	}
	r.mustForce(takeover(got[4]))
	d.Reread = true
	if again := idsOf(r.dequeue(d)); !slices.Equal(again, []store.ID{got[5].ID}) {
		r.Errorf("asked again, Dequeue gives %v, want only %v", again, got[5].ID)
	}
}
