package lane

import (
	"context"
	"time"
)

// Steps has what would happen by itself happen when a scheduler says so: whoever
// explores in which order things can happen gives the lane its own.
type Steps interface {
	// Go runs f some time later, beside its caller. What it is for is for those who
	// tell what happened.
	Go(what string, f func())
	// Wait returns once settled says that the question has an answer, or once ctx
	// has ended.
	Wait(ctx context.Context, question any, settled func() bool)
}

// Stepped is a store that steps whoever works over it. It cannot be had but from
// within this module.
type Stepped interface{ Steps() Steps }

// StepsOf returns the steps that a store asks for; nil: things happen by themselves.
func StepsOf(store any) Steps {
	if s, ok := store.(Stepped); ok {
		return s.Steps()
	}
	return nil
}

// Older makes what an engine remembers older than it is.
type Older func(by time.Duration)

// Aging is a store that says when time passes for what is remembered of it. It cannot
// be had but from within this module either.
type Aging interface{ Ages(older Older) }

// LetAge gives older to a store that asks for it.
func LetAge(store any, older Older) {
	if s, ok := store.(Aging); ok {
		s.Ages(older)
	}
}

// run runs f beside its caller.
func (l *Lane[K, Q, A]) run(f func()) {
	if l.config.Steps != nil {
		l.config.Steps.Go("flush", f)
		return
	}
	go f()
}

// wait waits for the answer to a question, and reports whether there is one: ctx
// may end before. An answer that is there counts, whatever became of ctx.
func (l *Lane[K, Q, A]) wait(ctx context.Context, it *Item[Q, A]) bool {
	if l.config.Steps != nil && !it.Settled() {
		l.config.Steps.Wait(ctx, it.question, it.Settled)
	}
	select {
	case <-it.done:
		return true
	default:
	}
	select {
	case <-it.done:
		return true
	case <-ctx.Done():
		return false
	}
}
