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
type Scheduled interface{ Scheduler() Scheduler }

// SchedulerOf returns the scheduler of a store, or nil if it has none.
func SchedulerOf(store any) Scheduler {
	if s, ok := store.(Scheduled); ok {
		return s.Scheduler()
	}
	return nil
}

// AdvanceFunc makes the entries of an engine's caches older.
type AdvanceFunc func(by time.Duration)

// TimeController is a store that controls the age of an engine's caches. Only this
// module can implement it.
type TimeController interface{ SetAdvance(advance AdvanceFunc) }

// RegisterAdvance passes advance to the store if it is a [TimeController].
func RegisterAdvance(store any, advance AdvanceFunc) {
	if s, ok := store.(TimeController); ok {
		s.SetAdvance(advance)
	}
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
