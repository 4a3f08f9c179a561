package storetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// A call whose context ended before the batch was sent returns ErrNotStarted.
func batchCanceledBefore[Tx any](r *txHarness[Tx]) {
	gone, cancel := context.WithCancel(r.ctx)
	cancel()
	c := create(r.fresh(), store.Succeeded)
	_, verdict, err := r.subject.Batches.send(gone, c, true, effectsOf("effect"))
	check.ResultIs(verdict, err)(r, store.NotCommitted, store.ErrNotStarted, "AtomicBatch with an ended context (want NotCommitted, ErrNotStarted)")
	r.mustBeAbsent(c.To.ID)
	r.mustHaveEffects("effect", 0)
}

// countdownContext ends after it was checked a number of times.
type countdownContext struct {
	context.Context

	end  context.CancelFunc
	left atomic.Int32
}

func (f *countdownContext) countDown() {
	if f.left.Add(-1) <= 0 {
		f.end()
	}
}

func (f *countdownContext) Done() <-chan struct{} {
	f.countDown()
	return f.Context.Done()
}

func (f *countdownContext) Err() error {
	f.countDown()
	return f.Context.Err()
}

// After the batch is sent, the call waits for its reply even if the caller's
// context ends: NotCommitted then means that there was no effect.
func batchCanceledDuring[Tx any](r *txHarness[Tx]) {
	for looks := range int32(20) {
		ctx, cancel := context.WithCancel(r.ctx)
		leaves := &countdownContext{Context: ctx, end: cancel}
		leaves.left.Store(looks + 1)
		c := create(r.fresh(), store.Succeeded)
		key := c.To.Key
		_, verdict, err := r.subject.Batches.send(leaves, c, true, effectsOf(key))
		cancel()
		switch {
		case verdict == store.Committed && err == nil:
			r.mustHoldRecord(c.To)
			r.mustHaveEffects(key, 1)
		case verdict == store.NotCommitted && errors.Is(err, store.ErrNotStarted):
			r.mustBeAbsent(c.To.ID)
			r.mustHaveEffects(key, 0)
		default:
			r.Errorf("AtomicBatch whose caller leaves after %d looks at its context = %v, %v, want Committed, or NotCommitted and ErrNotStarted", looks, verdict, err)
		}
	}
}
