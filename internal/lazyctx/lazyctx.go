// Package lazyctx has a context that is cheap until a goroutine waits for its end.
package lazyctx

import (
	"context"
	"sync"
	"time"
)

// Context creates a context of the standard library only when a goroutine waits for
// its end, so that derived contexts find it. Most attempts end before that.
type Context struct {
	parent context.Context //nolint:containedctx // a context has its parent

	mu    sync.Mutex  // guards the fields below
	std   *stdContext // nil until a goroutine waits
	ended bool        // it ended before std was made, without a cause
}

// stdContext is a context of the standard library with its cancel function.
type stdContext struct {
	context.Context //nolint:containedctx // it is one

	cancel context.CancelCauseFunc
}

// Init sets the parent of an empty context.
func (s *Context) Init(parent context.Context) { s.parent = parent }

// Deadline returns the parent's deadline.
func (s *Context) Deadline() (time.Time, bool) { return s.parent.Deadline() }

// Done makes the standard context.
func (s *Context) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.makeStd().Done()
}

// Err returns the error of the standard context, without making one.
func (s *Context) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		return s.std.Err()
	case s.ended:
		return context.Canceled
	default:
		return s.parent.Err()
	}
}

// Value asks the standard context as soon as there is one. The standard library
// uses Value to find the context to cancel with its parent, and the cause.
func (s *Context) Value(key any) any {
	s.mu.Lock()
	ctx := s.parent
	if s.std != nil || s.ended {
		ctx = s.makeStd().Context
	}
	s.mu.Unlock()
	return ctx.Value(key)
}

// Cancel ends the context with a cause. The first end counts.
func (s *Context) Cancel(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.std != nil:
		s.std.cancel(cause)
	case s.ended:
	case cause == nil && s.parent.Err() == nil:
		s.ended = true
	default: // if the parent has ended, its cause stays
		s.makeStd().cancel(cause)
	}
}

// makeStd returns the standard context, and makes it if necessary. mu is locked.
func (s *Context) makeStd() *stdContext {
	if s.std != nil {
		return s.std
	}
	parent := s.parent
	if s.ended {
		parent = context.WithoutCancel(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if s.std = (&stdContext{ctx, cancel}); s.ended {
		cancel(nil)
	}
	return s.std
}
