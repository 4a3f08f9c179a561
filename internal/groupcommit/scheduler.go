package groupcommit

import (
	"context"
	"time"
)

// Scheduler replaces goroutines and waiting. The explorer implements it, to control
// the order in which everything happens.
type Scheduler interface {
	// Go runs f later, concurrently with its caller. The name is for traces.
	Go(name string, f func())
	// Wait returns once settled reports true, or once ctx has ended.
	Wait(ctx context.Context, request any, settled func() bool)
}

// Scheduled is a store with its own scheduler. Only this module can implement it.
type Scheduled interface {
	Scheduler() Scheduler
	// SetAdvance receives the function that makes the entries of an engine's cache older.
	SetAdvance(advance func(by time.Duration))
}

// spawn runs f concurrently with its caller.
func (g *Batcher[K, Req, Res]) spawn(f func()) {
	if g.config.Scheduler != nil {
		g.config.Scheduler.Go("flush", f)
		return
	}
	go f()
}

// wait waits until the item is settled and reports true, or false if ctx ends first.
// A result that has arrived counts even if ctx has ended too.
func (g *Batcher[K, Req, Res]) wait(ctx context.Context, it *Item[Req, Res]) bool {
	if g.config.Scheduler != nil && !it.Settled() {
		g.config.Scheduler.Wait(ctx, it.request, it.Settled)
	}
	if it.Settled() {
		return true
	}
	select {
	case <-it.done:
		return true
	case <-ctx.Done():
		return false
	}
}
