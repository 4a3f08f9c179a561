package storetest

import (
	"context"
	"time"

	"github.com/semelgo/semel/store"
)

// purgeTxChecks test records that are purged while a transaction uses them.
func purgeTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"AgainstReclaim", purgeAgainstReclaim[Tx]},
		{"AgainstRollback", purgeAgainstRollback[Tx]},
		{"AgainstLastChange", purgeAgainstLastChange[Tx]},
	}
}

// runMeanwhile calls Purge while a transaction is open. It returns when Purge does,
// or when Purge seems to wait for the transaction; over waits for its end.
func (r *txHarness[Tx]) runMeanwhile() (over func()) {
	r.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := r.store.Purge(r.ctx, 10); err != nil && r.caps.Exclusion != store.ExcludesAll {
			r.Errorf("Purge beside an open transaction: %v", err)
		}
	}()
	over = func() { <-done }
	r.Cleanup(over)
	waits := time.NewTimer(100 * time.Millisecond)
	defer waits.Stop()
	select {
	case <-done:
	case <-waits.C:
	}
	return over
}

// An expired record that is claimed again, by a transaction that commits after
// Purge has found it and before it removes it, stays.
func purgeAgainstReclaim[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	released := r.expiring(store.Pending, -time.Second)
	claim, last := move(released, token(store.InProgress, 2)), create(r.fresh(), store.Succeeded)
	claim.To.Due = farAhead
	over := func() {}
	r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustApplyTx(ctx, tx, claim)
		over = r.runMeanwhile()
		return &last, nil
	})
	over()
	want := released
	want.Token = claim.To.Token
	r.mustHoldRecord(want)
	r.mustPurge(10, 0)
}

// A record whose claim was rolled back is purged in the end.
func purgeAgainstRollback[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	released := r.expiring(store.Pending, -time.Second)
	claim := move(released, token(store.InProgress, 2))
	over := func() {}
	r.mustRollBack(r.fresh().ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.mustApplyTx(ctx, tx, claim)
		over = r.runMeanwhile()
		return nil, errRun
	})
	over()
	if _, err := r.store.Purge(r.ctx, 10); err != nil {
		r.Errorf("Purge: %v", err)
	}
	r.mustBeAbsent(released.ID)
}

// A record that a transaction is about to change stays, or is purged and the
// transaction fails.
func purgeAgainstLastChange[Tx any](r *txHarness[Tx]) {
	released := r.expiring(store.Pending, -time.Second)
	last := move(released, token(store.Succeeded, 2))
	over := func() {}
	verdict, err := r.tx.Atomic(r.ctx, released.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		over = r.runMeanwhile()
		return &last, nil
	})
	over()
	current := r.read(released.ID)
	switch {
	case verdict == store.Committed && err == nil && current != nil && current.Token == last.To.Token:
		r.mustHaveEffects("effect", 1)
	case verdict == store.NotCommitted && err != nil && current == nil:
		r.mustHaveEffects("effect", 0)
	default:
		r.Errorf("Atomic while its record is purged = %v, %v, and %v is current: want it committed and current, or neither", verdict, err, current)
	}
}
