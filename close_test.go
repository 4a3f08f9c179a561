package semel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

func TestCloseRejectsNewCalls(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		for range 2 { // closing again is no error
			check.NoError(t, p.Close(t.Context()), "Close")
		}
		a := d.ask(t.Context(), p, call, never(t))
		a.wantErr(t, semel.ErrClosed)
		if semel.RetryAfter(a.err) != time.Second {
			t.Errorf("RetryAfter = %v, want a second: another process may answer", semel.RetryAfter(a.err))
		}
		_, _, err := adapter.Begin(t.Context(), p, call)
		check.ErrorIs(t, err, semel.ErrClosed, "Begin")
		wantState(t, mem, call, store.Absent)
	})
}

func TestCloseWaitsForRunningAttempts(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := later(func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) { pass(time.Minute); return "v", nil })
		})
		synctest.Wait()
		follower := later(func() answer { return d.ask(t.Context(), p, call, never(t)) })
		synctest.Wait()
		began := time.Now()
		check.NoError(t, p.Close(t.Context()), "Close")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Close took %v, want as long as what runs", took)
		}
		(<-leader).want(t, "v", false)
		(<-follower).want(t, "v", true)
	})
}

// TestCloseEndsWithItsContext: running attempts continue and record their outcome.
func TestCloseEndsWithItsContext(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := later(func() answer {
			return d.ask(t.Context(), p, call, func(context.Context) (string, error) { pass(time.Minute); return "v", nil })
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want the end of its context", err)
		}
		(<-leader).want(t, "v", false)
		wantState(t, mem, call, store.Succeeded)
	})
}

// TestCloseWithAnAttemptThatNeverEnds: Close returns when its context ends.
func TestCloseWithAnAttemptThatNeverEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		a := begin(t, p, plain("op", semel.OperationOptions[string]{}).Call(me, "k", "in"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want the end of its context", err)
		}
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
		check.NoError(t, p.Close(t.Context()), "Close after it ended")
	})
}
