package semel

import (
	"context"
	"sync"
	"time"
)

// span is a context that costs next to nothing until somebody waits for its end:
// only then is it made of the standard library's, which contexts derived from it
// know. Most attempts, and most askings of a store in memory, are over before that.
type lazyContext struct {
	parent   context.Context //nolint:containedctx // a context has its parent
	deadline *time.Time      // nil: none of its own

	mu       sync.Mutex  // guards real and over
	std      *stdContext // nil until somebody waits
	ended    bool        // it was ended before real was made, without a cause
	detached bool        // it does not end with its parent; without a deadline, never
}

// earnest is a context of the standard library, and its end.
type stdContext struct {
	context.Context //nolint:containedctx // it is one

	cancel context.CancelCauseFunc
}

// Deadline returns the earlier one of its own and its parent's.
func (s *lazyContext) Deadline() (time.Time, bool) {
	if !s.detached {
		at, ok := s.parent.Deadline()
		if ok && (s.deadline == nil || at.Before(*s.deadline)) {
			return at, true
		}
	}
	if s.deadline == nil {
		return time.Time{}, false
	}
	return *s.deadline, true
}

// Done makes the context in earnest.
func (s *lazyContext) Done() <-chan struct{} {
	if s.detached && s.deadline == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeStd().Done()
}

// Err is that of the context in earnest, which need not be made for it.
func (s *lazyContext) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		return s.std.Err()
	case s.ended:
		return context.Canceled
	case !s.detached && s.parent.Err() != nil, s.deadline != nil && until(*s.deadline) <= 0:
		return s.makeStd().Err()
	}
	return nil
}

// Value asks the context in earnest as soon as there is one: the standard library
// finds by it what to cancel together with its parent, and what the cause was.
func (s *lazyContext) Value(key any) any {
	s.mu.Lock()
	var ctx context.Context
	switch {
	case s.std != nil:
		ctx = s.std.Context
	case s.ended:
		ctx = s.makeStd()
	case s.detached:
		ctx = context.WithoutCancel(s.parent)
	default:
		ctx = s.parent
	}
	s.mu.Unlock()
	return ctx.Value(key)
}

// cancel ends the context with a cause. The first end counts.
func (s *lazyContext) cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		s.std.cancel(cause)
	case !s.detached && s.parent.Err() != nil:
		s.makeStd() // its parent was first
	case s.ended:
	case cause != nil:
		s.makeStd()
		s.std.cancel(cause)
	default:
		s.ended = true
	}
}

// end is cancel, for those who only wait.
func (s *lazyContext) end() { s.cancel(nil) }

// earnest returns the context of the standard library, with mu locked.
func (s *lazyContext) makeStd() context.Context {
	if s.std != nil {
		return s.std.Context
	}
	parent := s.parent
	if s.detached || s.ended {
		parent = context.WithoutCancel(parent)
	}
	if s.deadline == nil {
		ctx, stop := context.WithCancelCause(parent)
		s.std = &stdContext{ctx, stop}
	} else {
		ctx, stop := context.WithDeadline(parent, *s.deadline)
		s.std = &stdContext{ctx, func(error) { stop() }}
	}
	if s.ended {
		s.std.cancel(nil)
	}
	return s.std.Context
}

// timed is a span with a deadline, which few have.
type lazyDeadline struct {
	lazyContext

	at time.Time
}

// until makes of t, which is empty, a span of parent that ends at a time.
func (t *lazyDeadline) until(parent context.Context, at time.Time) *lazyContext {
	t.parent, t.at = parent, at
	t.deadline = &t.at
	return &t.lazyContext
}

// within returns ctx with an end of its own, d from now. End it.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, *lazyContext) {
	return withDeadline(ctx, now().Add(d))
}

// withinApart is within, whatever becomes of ctx.
func withDetachedTimeout(ctx context.Context, d time.Duration) (context.Context, *lazyContext) {
	s := new(lazyDeadline).until(ctx, now().Add(d))
	s.detached = true
	return s, s
}

// by is within that has its end at a time.
func withDeadline(ctx context.Context, deadline time.Time) (context.Context, *lazyContext) {
	s := new(lazyDeadline).until(ctx, deadline)
	return s, s
}
