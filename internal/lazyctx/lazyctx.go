// Package lazyctx has contexts that are cheap until a goroutine waits for their end.
package lazyctx

import (
	"context"
	"sync"
	"time"

	"github.com/semelgo/semel/internal/clock"
)

// Context creates a context of the standard library only when a goroutine waits for
// its end, so that derived contexts find it. Most attempts, and most calls of a
// store in memory, end before that.
type Context struct {
	parent   context.Context //nolint:containedctx // a context has its parent
	deadline *time.Time      // nil: no deadline of its own

	mu       sync.Mutex  // guards std and ended
	std      *stdContext // nil until a goroutine waits
	ended    bool        // it ended before std was made, without a cause
	detached bool        // the end of its parent does not end it
}

// stdContext is a context of the standard library with its cancel function.
type stdContext struct {
	context.Context //nolint:containedctx // it is one

	cancel context.CancelCauseFunc
}

// Deadline returns the earlier of its own deadline and its parent's.
func (s *Context) Deadline() (time.Time, bool) {
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

// Done makes the standard context.
func (s *Context) Done() <-chan struct{} {
	if s.detached && s.deadline == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeStd().Done()
}

// Err returns the error of the standard context, without making one if possible.
func (s *Context) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		return s.std.Err()
	case s.ended:
		return context.Canceled
	case !s.detached && s.parent.Err() != nil, s.deadline != nil && clock.Until(*s.deadline) <= 0:
		return s.makeStd().Err()
	}
	return nil
}

// Value asks the standard context as soon as there is one. The standard library
// uses Value to find the context to cancel with its parent, and the cause.
func (s *Context) Value(key any) any {
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

// Init sets the parent of an empty context.
func (s *Context) Init(parent context.Context) { s.parent = parent }

// Cancel ends the context with a cause. The first end counts.
func (s *Context) Cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		s.std.cancel(cause)
	case !s.detached && s.parent.Err() != nil:
		s.makeStd() // the parent ended first
	case s.ended:
	case cause != nil:
		s.makeStd()
		s.std.cancel(cause)
	default:
		s.ended = true
	}
}

// End is Cancel without a cause.
func (s *Context) End() { s.Cancel(nil) }

// makeStd returns the standard context, and makes it if necessary. mu is locked.
func (s *Context) makeStd() context.Context {
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

// Timed is a Context with a deadline. It is a type of its own because
// most have none.
type Timed struct {
	Context

	at time.Time
}

// Until makes t, which is empty, a context of parent that ends at a time.
func (t *Timed) Until(parent context.Context, at time.Time) *Context {
	t.parent, t.at = parent, at
	t.deadline = &t.at
	return &t.Context
}

// WithTimeout is context.WithTimeout. The caller must call End.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, *Context) {
	return WithDeadline(ctx, clock.Now().Add(d))
}

// WithDetachedTimeout is WithTimeout without the end of ctx.
func WithDetachedTimeout(ctx context.Context, d time.Duration) (context.Context, *Context) {
	s := new(Timed).Until(ctx, clock.Now().Add(d))
	s.detached = true
	return s, s
}

// WithDeadline is context.WithDeadline.
func WithDeadline(ctx context.Context, deadline time.Time) (context.Context, *Context) {
	s := new(Timed).Until(ctx, deadline)
	return s, s
}
