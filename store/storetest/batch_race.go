package storetest

import (
	"errors"
	"sync/atomic"

	"github.com/semelgo/semel/store"
)

// Concurrent callers send the same operation, with and without the right to its
// record, and some run it in a transaction: it has one effect.
func batchRace[Tx any](r *txHarness[Tx]) {
	for range 4 {
		rec := r.fresh()
		var committed atomic.Int32
		r.concurrently(manyCallers, func(i int) {
			if i%4 == 0 {
				if r.attempt(rec.ID, true, func(current store.SwapResult) *store.Change {
					if current.Token != (store.Token{}) {
						return nil
					}
					c := create(rec, store.Succeeded)
					return &c
				}) {
					committed.Add(1)
				}
				return
			}
			if r.sendUntilSettled(create(rec, store.Succeeded), i%2 == 0) {
				committed.Add(1)
			}
		})
		r.mustBeOne(rec.ID, committed.Load())
	}
}

// sendUntilSettled sends one effect of the record until it commits or the change is
// superseded. It reports whether its own change is applied.
func (r *txHarness[Tx]) sendUntilSettled(c store.Change, hold bool) bool {
	for {
		answer, verdict, err := r.subject.Batches.send(r.ctx, c, hold, effectsOf(c.To.ID.String()))
		switch {
		case verdict == store.Committed && err == nil:
			return true
		case verdict != store.NotCommitted || err != nil && !errors.Is(err, store.ErrConflict) || answer.Applied(c):
			r.Errorf("AtomicBatch = %s, %v, %v, want Committed, or superseded", showAnswer(answer), verdict, err)
			return false
		case err == nil && !answer.Busy:
			return false
		}
		if pause(r.ctx) != nil {
			r.Errorf("the batch never gets through: %v", err)
			return false
		}
	}
}
