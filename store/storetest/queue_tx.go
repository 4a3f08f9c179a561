package storetest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// queueTxChecks test waiting records that an open transaction has written or
// locked.
func queueTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Uncommitted", queueUncommitted[Tx]},
		{"Locked", queueLocked[Tx]},
		{"Written", queueWritten[Tx]},
	}
}

// mustDequeueMeanwhile is mustDequeue beside an open transaction. It does nothing
// if the store has a single writer: Dequeue would return nothing.
func (r *txHarness[Tx]) mustDequeueMeanwhile(want ...store.Record) {
	r.Helper()
	if r.caps.Exclusion != store.ExcludesAll {
		r.mustDequeue(dequeueOf(10), want...)
	}
}

// A record that is enqueued in a transaction is dequeued only after the commit.
func queueUncommitted[Tx any](r *txHarness[Tx]) {
	for _, end := range []error{errRun, nil} {
		rec, last := r.fresh(), create(r.fresh(), store.Succeeded)
		rec.Token, rec.Priority = token(store.Pending, 0), store.MaxPriority
		run := func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustApplyTx(ctx, tx, store.Change{To: rec})
			r.mustDequeueMeanwhile()
			if end != nil {
				return nil, end
			}
			return &last, nil
		}
		if end != nil {
			r.mustRollBack(last.To.ID, true, run)
			r.mustDequeue(dequeueOf(10))
			continue
		}
		r.mustCommit(last.To.ID, true, run)
		r.mustDequeue(dequeueOf(10), rec)
	}
}

// A record that another transaction has locked is skipped without waiting, so that
// no attempt runs in vain.
func queueLocked[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	held, other := r.createPending(store.MaxPriority, 0), r.createPending(0, 0)
	r.mustRollBack(held.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		r.mustDequeueMeanwhile(other)
		return nil, errRun
	})
	finish := move(held, token(store.Succeeded, 1))
	r.mustCommit(held.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.addEffect(ctx, tx, "effect")
		r.mustDequeue(dequeueOf(10))
		return &finish, nil
	})
	r.mustHaveEffects("effect", 1)
}

// A record that an open transaction has written is skipped without waiting.
func queueWritten[Tx any](r *txHarness[Tx]) {
	r.needExclusion()
	for _, state := range []store.State{store.Pending, store.InProgress, store.Failed} {
		rec, other, last := r.createPending(store.MaxPriority, 0), r.createPending(0, 0), create(r.fresh(), store.Succeeded)
		change := move(rec, token(state, 1))
		change.To.Due = farAhead
		r.mustRollBack(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustApplyTx(ctx, tx, change)
			r.mustDequeueMeanwhile(other)
			return nil, errRun
		})
		r.mustHoldRecord(rec)
		r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustApplyTx(ctx, tx, change)
			r.mustDequeueMeanwhile()
			return &last, nil
		})
		r.dequeue(dequeueOf(10)) // the remaining records
		if got := r.mustRead(rec.ID).Token; got != change.To.Token {
			r.Errorf("%s is current, want what the transaction has written: %s", showToken(got), showToken(change.To.Token))
		}
	}
}
