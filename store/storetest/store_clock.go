package storetest

import (
	"context"
	"time"

	"github.com/semelgo/semel/store"
)

// clockChecks test that only the store's clock counts, at the moment of the
// write. Where the suite can move the store's clock, the clock of the process
// differs from it.
func clockChecks() []storeCheck {
	return []storeCheck{
		{"SingleClock", singleClock},
		{"AtWrite", dueAtWrite},
	}
}

// clockTxChecks test long transactions: writes count from their own time, not
// from the beginning of the transaction.
func clockTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Write", clockOfWriteTx[Tx]},
		{"LastChange", clockOfLastChange[Tx]},
		{"IfDue", dueInTransaction[Tx]},
		{"LastIfDue", dueAtTheEnd[Tx]},
	}
}

// Reads and comparisons use one clock: a record that reads as due can be taken
// over, and a lease does not expire before its time.
func singleClock(r *harness) {
	rec := r.fresh()
	rec.Due = r.shortTime()
	c := create(rec, store.InProgress)
	asked := time.Now()
	r.mustApply(c)
	take := takeover(c.To)
	for {
		before := r.mustRead(rec.ID).Due
		if r.swap(take)[0].Applied(take) {
			break
		}
		if before <= 0 {
			r.Fatalf("Due reads %v, and a change with IfDue is rejected", before)
		}
		r.passATick()
	}
	passed := time.Since(asked)
	if r.advance != nil {
		passed = r.mustRead(rec.ID).Age
	}
	if passed < r.shortTime()-time.Millisecond {
		r.Errorf("a lease of %v is over after %v", r.shortTime(), passed)
	}
}

// passATick lets a part of shortTime pass.
func (r *harness) passATick() {
	r.Helper()
	if r.advance != nil {
		r.advance(r.shortTime() / 8)
	} else if pause(r.ctx) != nil {
		r.Fatal("the time never comes")
	}
}

// A lease that expires between the read and the write has expired at the write.
func dueAtWrite(r *harness) {
	rec := r.fresh()
	rec.Due = r.shortTime()
	c := create(rec, store.InProgress)
	r.mustApply(c)
	take := takeover(r.mustRead(rec.ID))
	r.passTime(rec.ID, isDue)
	r.mustApply(take)
}

// passShortTime lets shortTime pass on the store's clock and returns the time after it.
func (r *harness) passShortTime(id store.ID) time.Time {
	r.Helper()
	first := r.mustRead(id).Age
	r.passTime(id, func(rec store.Record) bool { return rec.Age >= first+2*r.shortTime() })
	return time.Now()
}

// mustCountFrom requires that a lease counts from its write, and not from the
// beginning of its transaction, more than shortTime earlier.
func (r *harness) mustCountFrom(written time.Time, what string, id store.ID) store.Record {
	r.Helper()
	got := r.mustRead(id)
	most := clockSlack // the clock of the process tells nothing if the store's clock is moved
	if r.advance == nil {
		most = time.Since(written) + r.shortTime()
	}
	if got.Due < farAhead-most || got.Due > farAhead+time.Millisecond {
		r.Errorf("%s late in a transaction: a Due of %v reads %v", what, farAhead, got.Due)
	}
	return got
}

// sinceNow requires that the age of got's token counts from written.
func (r *harness) sinceNow(written time.Time, what string, got store.Record) {
	r.Helper()
	most := clockSlack
	if r.advance == nil {
		most = time.Since(written) + r.shortTime()
	}
	if got.Since > most {
		r.Errorf("%s late in a transaction: Since reads %v, want it to count from the write", what, got.Since)
	}
}

func clockOfWriteTx[Tx any](r *txHarness[Tx]) {
	old, waits, last := r.mustCreateIn(store.InProgress), r.mustCreateIn(store.Pending), create(r.fresh(), store.Succeeded)
	queue, claim, beat := create(r.fresh(), store.Pending), move(waits, token(store.InProgress, 2)), move(old, old.Token)
	queue.To.Due, claim.To.Due, beat.To.Due = farAhead, farAhead, farAhead
	var written time.Time
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		written = r.passShortTime(old.ID)
		for _, c := range []store.Change{queue, claim, beat} {
			r.mustApplyTx(ctx, tx, c)
		}
		return &last, nil
	})
	r.sinceNow(written, "a create", r.mustCountFrom(written, "a create", queue.To.ID))
	r.sinceNow(written, "a claim", r.mustCountFrom(written, "a claim", waits.ID))
	r.mustCountFrom(written, "a heartbeat", old.ID)
}

func clockOfLastChange[Tx any](r *txHarness[Tx]) {
	for _, made := range []bool{true, false} {
		old := r.mustCreateIn(store.InProgress)
		last := move(old, token(store.Pending, 1))
		if made {
			last = create(r.fresh(), store.Pending)
		}
		last.To.Due = farAhead
		var written time.Time
		r.mustCommit(last.To.ID, made, func(context.Context, Tx, store.SwapResult) (*store.Change, error) {
			written = r.passShortTime(old.ID)
			return &last, nil
		})
		r.sinceNow(written, "the last change", r.mustCountFrom(written, "the last change", last.To.ID))
	}
}

// A lease that expires while a transaction is open has expired for the transaction
// too.
func dueInTransaction[Tx any](r *txHarness[Tx]) {
	leased, queued, last := r.dueSoon(store.InProgress), r.dueSoon(store.Pending), create(r.fresh(), store.Succeeded)
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		for _, rec := range []store.Record{leased, queued} {
			r.passTime(rec.ID, isDue)
			r.mustApplyTx(ctx, tx, takeover(rec))
		}
		return &last, nil
	})
}

// dueSoon creates a record in the state, due after shortTime.
func (r *harness) dueSoon(state store.State) store.Record {
	r.Helper()
	rec := r.fresh()
	rec.Due = r.shortTime()
	c := create(rec, state)
	r.mustApply(c)
	return c.To
}

func dueAtTheEnd[Tx any](r *txHarness[Tx]) {
	for _, state := range []store.State{store.InProgress, store.Pending} {
		rec := r.dueSoon(state)
		take := move(rec, token(store.Succeeded, 2))
		take.IfDue = true
		r.mustCommit(rec.ID, false, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.addEffect(ctx, tx, rec.ID.String())
			r.passTime(rec.ID, isDue)
			return &take, nil
		})
		r.mustHaveEffects(rec.ID.String(), 1)
	}
}
