package storetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func raceTxChecks[Tx any]() []txCheck[Tx] {
	return []txCheck[Tx]{
		{"Locked", raceLocked[Tx]},
		{"Unlocked", raceUnlocked[Tx]},
		{"ZombieAgainstTakeover", raceZombie[Tx]},
	}
}

// attempt runs transactions until one commits or the change is superseded. It
// reports whether its own change is applied.
func (r *txHarness[Tx]) attempt(id store.ID, hold bool, last func(current store.SwapResult) *store.Change) bool {
	for {
		verdict, err := r.tx.Atomic(r.ctx, id, hold, func(ctx context.Context, tx Tx, current store.SwapResult) (*store.Change, error) {
			c := last(current)
			if current.Busy || c == nil {
				return nil, errRun
			}
			return c, r.subject.Effect(ctx, tx, id.String())
		})
		switch {
		case verdict == store.Committed && err == nil:
			return true
		case verdict != store.NotCommitted:
			r.Errorf("Atomic = %v, %v, want Committed or NotCommitted", verdict, err)
			return false
		}
		if current := r.read(id); current != nil && current.State == store.Succeeded {
			return false
		}
		if pause(r.ctx) != nil {
			r.Errorf("the transaction never gets through: %v", err)
			return false
		}
	}
}

// All callers run the operation under the right to its record: it has one effect.
func raceLocked[Tx any](r *txHarness[Tx]) {
	for range 4 {
		rec := r.fresh()
		var committed atomic.Int32
		r.concurrently(manyCallers, func(int) {
			if r.attempt(rec.ID, true, func(current store.SwapResult) *store.Change {
				if current.Token != (store.Token{}) {
					return nil
				}
				c := create(rec, store.Succeeded)
				return &c
			}) {
				committed.Add(1)
			}
		})
		r.mustBeOne(rec.ID, committed.Load())
	}
}

// Without the right, the last change alone admits one caller.
func raceUnlocked[Tx any](r *txHarness[Tx]) {
	for range 4 {
		rec := r.fresh()
		var committed atomic.Int32
		r.concurrently(manyCallers, func(int) {
			if r.attempt(rec.ID, false, func(store.SwapResult) *store.Change {
				c := create(rec, store.Succeeded)
				return &c
			}) {
				committed.Add(1)
			}
		})
		r.mustBeOne(rec.ID, committed.Load())
	}
}

func (r *txHarness[Tx]) mustBeOne(id store.ID, committed int32) {
	r.Helper()
	check.Equal(r, committed, 1, "transactions of %d committed", manyCallers)
	r.mustHaveEffects(id.String(), 1)
}

// A leader whose lease has expired commits its effect with its end, or is taken
// over and leaves no effect.
func raceZombie[Tx any](r *txHarness[Tx]) {
	for range 16 {
		c := create(r.fresh(), store.InProgress)
		r.mustApply(c)
		id := c.To.ID
		finish := move(c.To, store.Token{State: store.Succeeded, Attempt: 1, Owner: c.To.Owner})
		take := move(c.To, token(store.InProgress, 2))
		take.IfDue = true
		var finished, taken bool
		r.concurrently(2, func(i int) {
			if i == 1 {
				answers, err := swapAll(r.ctx, r.store, []store.Change{take})
				taken = err == nil && answers[0].Applied(take)
				return
			}
			verdict, err := r.tx.Atomic(r.ctx, id, false, r.effectThen(id.String(), &finish, nil))
			finished = verdict == store.Committed
			if !finished && verdict != store.NotCommitted || finished != (err == nil) {
				r.Errorf("Atomic = %v, %v", verdict, err)
			}
			if err != nil && !errors.Is(err, store.ErrSuperseded) {
				r.Logf("the leader's transaction failed: %v", err)
			}
		})
		want := 0
		if finished {
			want = 1
		}
		if finished == taken {
			r.Errorf("finished %v, taken over %v, want one of them", finished, taken)
		}
		r.mustHaveEffects(id.String(), want)
	}
}
