package semeltest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/semelgo/semel/store"
)

// A caller whose context ends before anything was sent gets an error that says so.
func batchNotBegun[Tx any](r *txRig[Tx]) {
	gone, cancel := context.WithCancel(r.ctx)
	cancel()
	c := create(r.fresh(), store.Succeeded)
	_, verdict, err := r.subject.Batches.send(gone, c, true, effectsOf("effect"))
	if verdict != store.NotCommitted || !errors.Is(err, store.ErrNotStarted) {
		r.Errorf("AtomicBatch of a caller who is gone = %v, %v, want NotCommitted, ErrNotStarted", verdict, err)
	}
	r.mustBeAbsent(c.To.ID)
	r.mustEffects("effect", 0)
}

// fading is a context that ends when it is looked at for the last time.
type fading struct {
	context.Context

	end  context.CancelFunc
	left atomic.Int32
}

func (f *fading) look() {
	if f.left.Add(-1) <= 0 {
		f.end()
	}
}

func (f *fading) Done() <-chan struct{} {
	f.look()
	return f.Context.Done()
}

func (f *fading) Err() error {
	f.look()
	return f.Context.Err()
}

// After the batch is sent, the call waits for its reply even if the caller's
// context ends: NotCommitted then means that there was no effect.
func batchCallerGone[Tx any](r *txRig[Tx]) {
	for looks := range int32(20) {
		ctx, cancel := context.WithCancel(r.ctx)
		leaves := &fading{Context: ctx, end: cancel}
		leaves.left.Store(looks + 1)
		c := create(r.fresh(), store.Succeeded)
		key := c.To.Key
		_, verdict, err := r.subject.Batches.send(leaves, c, true, effectsOf(key))
		cancel()
		switch {
		case verdict == store.Committed && err == nil:
			r.mustStand(c.To)
			r.mustEffects(key, 1)
		case verdict == store.NotCommitted && errors.Is(err, store.ErrNotStarted):
			r.mustBeAbsent(c.To.ID)
			r.mustEffects(key, 0)
		default:
			r.Errorf("AtomicBatch whose caller leaves after %d looks at its context = %v, %v, want Committed, or NotCommitted and ErrNotStarted", looks, verdict, err)
		}
	}
}
