package semel

import (
	"context"
	"sync"
	"time"
)

// span is a context that costs next to nothing until somebody waits for its end:
// only then is it made of the standard library's, which contexts derived from it
// know. Most attempts, and most askings of a store in memory, are over before that.
type span struct {
	parent   context.Context //nolint:containedctx // a context has its parent
	deadline *time.Time      // nil: none of its own

	mu    sync.Mutex // guards real and over
	real  *earnest   // nil until somebody waits
	over  bool       // it was ended before real was made, without a cause
	apart bool       // it does not end with its parent; without a deadline, never
}

// earnest is a context of the standard library, and its end.
type earnest struct {
	context.Context //nolint:containedctx // it is one

	stop context.CancelCauseFunc
}

// Deadline returns the earlier one of its own and its parent's.
func (s *span) Deadline() (time.Time, bool) {
	if !s.apart {
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
func (s *span) Done() <-chan struct{} {
	if s.apart && s.deadline == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.earnest().Done()
}

// Err is that of the context in earnest, which need not be made for it.
func (s *span) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.real != nil:
		return s.real.Err()
	case s.over:
		return context.Canceled
	case !s.apart && s.parent.Err() != nil, s.deadline != nil && until(*s.deadline) <= 0:
		return s.earnest().Err()
	}
	return nil
}

// Value asks the context in earnest as soon as there is one: the standard library
// finds by it what to cancel together with its parent, and what the cause was.
func (s *span) Value(key any) any {
	s.mu.Lock()
	var ctx context.Context
	switch {
	case s.real != nil:
		ctx = s.real.Context
	case s.over:
		ctx = s.earnest()
	case s.apart:
		ctx = context.WithoutCancel(s.parent)
	default:
		ctx = s.parent
	}
	s.mu.Unlock()
	return ctx.Value(key)
}

// cancel ends the context with a cause. The first end counts.
func (s *span) cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.real != nil:
		s.real.stop(cause)
	case !s.apart && s.parent.Err() != nil:
		s.earnest() // its parent was first
	case s.over:
	case cause != nil:
		s.earnest()
		s.real.stop(cause)
	default:
		s.over = true
	}
}

// end is cancel, for those who only wait.
func (s *span) end() { s.cancel(nil) }

// earnest returns the context of the standard library, with mu locked.
func (s *span) earnest() context.Context {
	if s.real != nil {
		return s.real.Context
	}
	parent := s.parent
	if s.apart || s.over {
		parent = context.WithoutCancel(parent)
	}
	if s.deadline == nil {
		ctx, stop := context.WithCancelCause(parent)
		s.real = &earnest{ctx, stop}
	} else {
		ctx, stop := context.WithDeadline(parent, *s.deadline)
		s.real = &earnest{ctx, func(error) { stop() }}
	}
	if s.over {
		s.real.stop(nil)
	}
	return s.real.Context
}

// timed is a span with a deadline, which few have.
type timed struct {
	span

	at time.Time
}

// until makes of t, which is empty, a span of parent that ends at a time.
func (t *timed) until(parent context.Context, at time.Time) *span {
	t.parent, t.at = parent, at
	t.deadline = &t.at
	return &t.span
}

// within returns ctx with an end of its own, d from now. End it.
func within(ctx context.Context, d time.Duration) (context.Context, *span) {
	return by(ctx, now().Add(d))
}

// withinApart is within, whatever becomes of ctx.
func withinApart(ctx context.Context, d time.Duration) (context.Context, *span) {
	s := new(timed).until(ctx, now().Add(d))
	s.apart = true
	return s, s
}

// by is within that has its end at a time.
func by(ctx context.Context, deadline time.Time) (context.Context, *span) {
	s := new(timed).until(ctx, deadline)
	return s, s
}
