package semeltest

import (
	"context"
	"time"

	"github.com/semelgo/semel/store"
)

// authorityChecks are about the one clock that counts: the store's, at the
// moment of the write. Where the suite can move the store's clock, that of the
// caller shows another time altogether.
func authorityChecks() []storeCheck {
	return []storeCheck{
		{"OneClock", oneClock},
		{"AtTheWrite", dueAtTheWrite},
	}
}

// authorityTxChecks are about long transactions: the time of their beginning is
// not the time of their writes.
func authorityTxChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Write", clockOfWriteTx[Tx]},
		check[Tx]{"LastChange", clockOfLastChange[Tx]},
		check[Tx]{"IfDue", dueInTransaction[Tx]},
		check[Tx]{"LastIfDue", dueAtTheEnd[Tx]},
	)
}

// What the store reads and what it compares agree: a record that reads as due
// can be taken over, and a lease is not over before its time.
func oneClock(r *rig) {
	rec := r.fresh()
	rec.Due = r.soon()
	c := create(rec, store.InProgress)
	asked := time.Now()
	r.mustForce(c)
	take := takeover(c.To)
	for {
		before := r.mustRead(rec.ID).Due
		if r.swap(take)[0].Applied(take) {
			break
		}
		if before <= 0 {
			r.Fatalf("Due reads %v, and a change that asks for it is refused", before)
		}
		r.tick()
	}
	passed := time.Since(asked)
	if r.advance != nil {
		passed = r.mustRead(rec.ID).Age
	}
	if passed < r.soon()-time.Millisecond {
		r.Errorf("a lease of %v is over after %v", r.soon(), passed)
	}
}

// tick lets a part of soon go by.
func (r *rig) tick() {
	r.Helper()
	if r.advance != nil {
		r.advance(r.soon() / 8)
	} else if pause(r.ctx) != nil {
		r.Fatal("the time never comes")
	}
}

// A lease that runs out between the reading and the write is over at the write.
func dueAtTheWrite(r *rig) {
	rec := r.fresh()
	rec.Due = r.soon()
	c := create(rec, store.InProgress)
	r.mustForce(c)
	take := takeover(r.mustRead(rec.ID))
	r.pass(rec.ID, isDue)
	r.mustForce(take)
}

// linger lets time go by, by the store's clock, and returns when that was.
func (r *rig) linger(id store.ID) time.Time {
	r.Helper()
	first := r.mustRead(id).Age
	r.pass(id, func(rec store.Record) bool { return rec.Age >= first+2*r.soon() })
	return time.Now()
}

// mustCountFrom requires that a lease of long counts from when it was written,
// and not from the beginning of its transaction, more than soon before.
func (r *rig) mustCountFrom(written time.Time, what string, id store.ID) store.Record {
	r.Helper()
	got := r.mustRead(id)
	most := slack // where the store's clock is moved, the process's says nothing
	if r.advance == nil {
		most = time.Since(written) + r.soon()
	}
	if got.Due < long-most || got.Due > long+time.Millisecond {
		r.Errorf("%s late in a transaction: a Due of %v reads %v", what, long, got.Due)
	}
	return got
}

// sinceNow requires that the token of got counts from then.
func (r *rig) sinceNow(written time.Time, what string, got store.Record) {
	r.Helper()
	most := slack
	if r.advance == nil {
		most = time.Since(written) + r.soon()
	}
	if got.Since > most {
		r.Errorf("%s late in a transaction: Since reads %v, want it to count from the write", what, got.Since)
	}
}

func clockOfWriteTx[Tx any](r *txRig[Tx]) {
	old, waits, last := r.stand(store.InProgress), r.stand(store.Pending), create(r.fresh(), store.Succeeded)
	queue, claim, beat := create(r.fresh(), store.Pending), move(waits, token(store.InProgress, 2)), move(old, old.Token)
	queue.To.Due, claim.To.Due, beat.To.Due = long, long, long
	var written time.Time
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		written = r.linger(old.ID)
		for _, c := range []store.Change{queue, claim, beat} {
			r.mustForceTx(ctx, tx, c)
		}
		return &last, nil
	})
	r.sinceNow(written, "a create", r.mustCountFrom(written, "a create", queue.To.ID))
	r.sinceNow(written, "a claim", r.mustCountFrom(written, "a claim", waits.ID))
	r.mustCountFrom(written, "a heartbeat", old.ID)
}

func clockOfLastChange[Tx any](r *txRig[Tx]) {
	for _, made := range []bool{true, false} {
		old := r.stand(store.InProgress)
		last := move(old, token(store.Pending, 1))
		if made {
			last = create(r.fresh(), store.Pending)
		}
		last.To.Due = long
		var written time.Time
		r.mustCommit(last.To.ID, made, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
			written = r.linger(old.ID)
			return &last, nil
		})
		r.sinceNow(written, "the last change", r.mustCountFrom(written, "the last change", last.To.ID))
	}
}

// A lease that runs out while a transaction is open is over for it, too.
func dueInTransaction[Tx any](r *txRig[Tx]) {
	leased, queued, last := r.dueSoon(store.InProgress), r.dueSoon(store.Pending), create(r.fresh(), store.Succeeded)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		for _, rec := range []store.Record{leased, queued} {
			r.pass(rec.ID, isDue)
			r.mustForceTx(ctx, tx, takeover(rec))
		}
		return &last, nil
	})
}

// dueSoon lets a record stand in the state, due soon.
func (r *rig) dueSoon(state store.State) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Due = r.soon()
	c := create(rec, state)
	r.mustForce(c)
	return c.To
}

func dueAtTheEnd[Tx any](r *txRig[Tx]) {
	for _, state := range []store.State{store.InProgress, store.Pending} {
		rec := r.dueSoon(state)
		take := move(rec, token(store.Succeeded, 2))
		take.IfDue = true
		r.mustCommit(rec.ID, false, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.act(ctx, tx, rec.ID.String())
			r.pass(rec.ID, isDue)
			return &take, nil
		})
		r.mustEffects(rec.ID.String(), 1)
	}
}
