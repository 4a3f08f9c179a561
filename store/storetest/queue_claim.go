package storetest

import (
	"slices"
	"time"

	"github.com/semelgo/semel/store"
)

// A dequeued record equals the record after a Swap of the same claim, in all
// fields.
func queueFields(r *harness) {
	for i, tainted := range []bool{false, true} {
		out, twin := r.fresh(), r.fresh()
		for _, rec := range []*store.Record{&out, &twin} {
			rec.Token = token(store.Pending, uint32(7*i))
			rec.Priority, rec.Tainted, rec.Due = int8(3-4*i), tainted, -time.Minute
			rec.Input, rec.Outcome, rec.Fingerprint = []byte("\x00input"), []byte("progress"), []byte("\xff")
		}
		r.mustApply(store.Change{To: out})
		d := dequeueOf(10)
		r.mustDequeue(d, out)
		r.mustApply(store.Change{To: twin})
		r.mustApply(d.Claim(twin))
		r.mustHoldRecord(claimed(d, out))
		want, got := r.mustRead(twin.ID), r.mustRead(out.ID)
		want.ID, want.Key, want.Fingerprint = got.ID, got.Key, got.Fingerprint
		if diff := diffRecords(got, want); diff != "" {
			r.Errorf("a record that was handed out differs from one that was claimed (-want +got):\n%s", diff)
		}
		if !near(got.Due, farAhead) || !near(want.Due, farAhead) || got.Expire != 0 || !recent(got.Since) {
			r.Errorf("handed out for %v it reads Due %v, Expire %v, Since %v", farAhead, got.Due, got.Expire, got.Since)
		}
	}
}

// A running record does not expire, even if it would have expired while it waited.
func queueExpire(r *harness) {
	rec := r.fresh()
	rec.Token, rec.Expire = token(store.Pending, 1), -time.Second
	r.mustApply(store.Change{To: rec})
	d := dequeueOf(10)
	rec.Expire = 0
	r.mustDequeue(d, rec)
	r.mustPurge(10, 0)
	r.mustHoldRecord(claimed(d, rec))
}

// A record with an expired lease is not dequeued, because it may have had an
// effect, which the caller that takes over must know.
func queueLease(r *harness) {
	rec := r.createPending(0, 0)
	d := dequeueOf(10)
	d.Lease = -time.Second
	r.mustDequeue(d, rec)
	r.mustDequeue(dequeueOf(10))
	got := claimed(d, rec)
	r.mustHoldRecord(got)
	r.mustApply(takeover(got))
}

// A change with the token of the Pending record is superseded.
func queueOldToken(r *harness) {
	rec := r.createPending(0, 0)
	d := dequeueOf(10)
	r.mustDequeue(d, rec)
	got := claimed(d, rec)
	for _, late := range []store.Token{token(store.Pending, 0), token(store.Failed, 0), token(store.InProgress, 1)} {
		r.mustReject(move(rec, late), got.Token)
	}
	r.mustHoldRecord(got)
	finish := move(got, store.Token{State: store.Succeeded, Attempt: 1, Owner: d.Owner})
	r.mustApply(finish)
	r.mustDequeue(dequeueOf(10))
}

// A worker whose task was swept and dequeued again can neither end nor renew it,
// and the next worker's writes are applied.
func queueZombie(r *harness) {
	rec := r.createPending(0, 0)
	first, second := dequeueOf(10), dequeueOf(10)
	first.Lease = -time.Second
	r.mustDequeue(first, rec)
	zombie := claimed(first, rec)
	sweep := sweeps(zombie)[0]
	r.mustApply(sweep)
	queued := zombie
	queued.Token = sweep.To.Token
	r.mustDequeue(second, queued)
	winner := claimed(second, queued)
	beat, end := move(zombie, zombie.Token), move(zombie, store.Token{State: store.Succeeded, Attempt: 1, Owner: first.Owner})
	beat.To.Due = 3 * farAhead
	for _, late := range []store.Change{beat, end} {
		r.mustReject(late, winner.Token)
	}
	r.beat(winner, 2*farAhead)
	finish := move(winner, store.Token{State: store.Succeeded, Attempt: 2, Owner: second.Owner})
	r.mustApply(finish)
	r.mustReject(end, finish.To.Token)
}

// A repeated Dequeue returns the same records and claims nothing, whatever its Limit.
// Another Owner or another Operation makes another call. A record needs no input.
func queueRepeated(r *harness) {
	bare := r.fresh()
	bare.Token = token(store.Pending, 0)
	r.mustApply(store.Change{To: bare})
	all := []store.Record{bare}
	for i := 1; i < 6; i++ {
		all = append(all, r.createPending(int8(-i%5), 0))
	}
	d, other := dequeueOf(3), dequeueOf(1)
	r.mustDequeue(d, all[0], all[5], all[1])
	r.mustDequeue(other, all[2])
	elsewhere := identity("elsewhere", "scope", "key")
	elsewhere.Token = token(store.Pending, 0)
	r.mustApply(store.Change{To: elsewhere})
	there := d
	there.Operation = elsewhere.Operation
	r.mustDequeue(there, elsewhere)
	for _, limit := range []int{3, 1, 100} {
		repeated := d
		repeated.Limit = limit
		r.mustReturnAgain(repeated, all[0], all[5], all[1])
		r.mustReturnAgain(other, all[2])
		r.mustReturnAgain(there, elsewhere)
	}
	r.mustHoldRecord(all[3])
	r.mustHoldRecord(all[4])
}

// mustReturnAgain repeats d and requires its earlier claims, in any order.
func (r *harness) mustReturnAgain(d store.Dequeue, want ...store.Record) {
	r.Helper()
	got := r.dequeue(d)
	if !sameIDs(idsOf(got), idsOf(want)) {
		r.Fatalf("repeated Dequeue(%+v) gives\n %v\nwant\n %v", d, idsOf(got), idsOf(want))
	}
	for _, rec := range got {
		i := slices.IndexFunc(want, func(w store.Record) bool { return w.ID == rec.ID })
		if diff := diffRecords(rec, claimed(d, want[i])); diff != "" {
			r.Errorf("repeated Dequeue(%+v) gives a record that differs (-want +got):\n%s", d, diff)
		}
	}
}

// sameIDs compares IDs in any order.
func sameIDs(a, b []store.ID) bool {
	return slices.Equal(slices.SortedFunc(slices.Values(a), compareIDs), slices.SortedFunc(slices.Values(b), compareIDs))
}

// A repeated Dequeue claims nothing while one of its claims is current, and claims
// again when none is.
func queueRepeatedAfterEnd(r *harness) {
	first, second := r.createPending(1, 0), r.createPending(0, 0)
	d := dequeueOf(2)
	d.Lease = -time.Second // a claim whose lease has expired is current, too
	r.mustDequeue(d, first, second)
	next := r.createPending(0, 0)
	released := move(claimed(d, first), store.Token{State: store.Pending, Attempt: 1, Owner: d.Owner})
	r.mustApply(released)
	r.mustReturnAgain(d, second)
	r.mustApply(move(claimed(d, second), store.Token{State: store.Succeeded, Attempt: 1, Owner: d.Owner}))
	again := first
	again.Token = released.To.Token
	r.mustDequeue(d, again, next)
	r.mustReturnAgain(d, again, next)
}

// A Dequeue that rereads returns the same records and claims nothing.
func queueReread(r *harness) {
	var all []store.Record
	for i := range 5 {
		all = append(all, r.createPending(int8(-i), 0))
	}
	d := dequeueOf(3)
	r.mustDequeue(d, all[:3]...)
	other := dequeueOf(1)
	r.mustDequeue(other, all[3])
	d.Reread, other.Reread = true, true
	for range 2 {
		r.mustDequeue(d, all[:3]...)
	}
	r.mustDequeue(other, all[3])
	never := dequeueOf(3)
	never.Reread = true
	r.mustDequeue(never)
	r.mustHoldRecord(all[4])
}

// A Dequeue that rereads does not return records that have changed since.
func queueRereadAfterEnd(r *harness) {
	var all []store.Record
	for i := range 6 {
		all = append(all, r.createPending(int8(-i%5), 0))
	}
	d := dequeueOf(6)
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
		r.mustApply(move(got[i], end))
	}
	r.mustApply(takeover(got[4]))
	d.Reread = true
	if again := idsOf(r.dequeue(d)); !slices.Equal(again, []store.ID{got[5].ID}) {
		r.Errorf("a Dequeue that rereads returns %v, want only %v", again, got[5].ID)
	}
}
