package semeltest

import (
	"context"

	"github.com/semelgo/semel/store"
)

// queueTxChecks are about what waits, or is about to, while a transaction has it.
func queueTxChecks[Tx any]() []check[Tx] {
	return inTx(
		check[Tx]{"Uncommitted", queueUncommitted[Tx]},
		check[Tx]{"Held", queueHeld[Tx]},
		check[Tx]{"Written", queueWritten[Tx]},
	)
}

// mustDequeueBeside is mustDequeue beside an open transaction. Where that keeps
// everybody else out, it is not asked: nothing would be given.
func (r *txRig[Tx]) mustDequeueBeside(want ...store.Record) {
	r.Helper()
	if !r.caps.SingleWriter {
		r.mustDequeue(asking(10), want...)
	}
}

// What is enqueued in a transaction is handed out once that has committed, and
// never if it has not.
func queueUncommitted[Tx any](r *txRig[Tx]) {
	for _, end := range []error{errOwn, nil} {
		rec, last := r.fresh(), create(r.fresh(), store.Succeeded)
		rec.Token, rec.Priority = token(store.Pending, 0), store.MaxPriority
		run := func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustForceTx(ctx, tx, store.Change{To: rec})
			r.mustDequeueBeside()
			if end != nil {
				return nil, end
			}
			return &last, nil
		}
		if end != nil {
			r.mustRollBack(last.To.ID, true, run)
			r.mustDequeue(asking(10))
			continue
		}
		r.mustCommit(last.To.ID, true, run)
		r.mustDequeue(asking(10), rec)
	}
}

// A record that another transaction has the right to is skipped without waiting, so
// that no attempt runs in vain.
func queueHeld[Tx any](r *txRig[Tx]) {
	held, other := r.waiting(store.MaxPriority, 0), r.waiting(0, 0)
	r.mustRollBack(held.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		r.mustDequeueBeside(other)
		return nil, errOwn
	})
	finish := move(held, token(store.Succeeded, 1))
	r.mustCommit(held.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
		r.act(ctx, tx, "effect")
		r.mustDequeue(asking(10))
		return &finish, nil
	})
	r.mustEffects("effect", 1)
}

// What an open transaction has written is passed over, and not waited for.
func queueWritten[Tx any](r *txRig[Tx]) {
	for _, state := range []store.State{store.Pending, store.InProgress, store.Failed} {
		rec, other, last := r.waiting(store.MaxPriority, 0), r.waiting(0, 0), create(r.fresh(), store.Succeeded)
		change := move(rec, token(state, 1))
		change.To.Due = long
		r.mustRollBack(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustForceTx(ctx, tx, change)
			r.mustDequeueBeside(other)
			return nil, errOwn
		})
		r.mustStand(rec)
		r.mustCommit(last.To.ID, true, func(ctx context.Context, tx Tx, _ store.SwapResult) (*store.Change, error) {
			r.mustForceTx(ctx, tx, change)
			r.mustDequeueBeside()
			return &last, nil
		})
		r.dequeue(asking(10)) // what is left
		if got := r.mustRead(rec.ID).Token; got != change.To.Token {
			r.Errorf("%s stands, want what the transaction has written: %s", showToken(got), showToken(change.To.Token))
		}
	}
}
