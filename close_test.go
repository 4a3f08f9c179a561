package semel_test

import (
	"context"
	"testing"
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
		check.Equal(t, semel.RetryAfter(a.err), time.Second, "RetryAfter (another process may answer)")
		_, _, err := adapter.Begin(t.Context(), p, call)
		check.ErrorIs(t, err, semel.ErrClosed, "Begin")
		wantState(t, mem, call, store.Absent)
	})
}

func TestCloseWaitsForRunningAttempts(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, _ := solo(t, semel.Options{Wait: time.Hour})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := d.later(t, p, call, takes(time.Minute))
		follower := d.later(t, p, call, never(t))
		began := time.Now()
		check.NoError(t, p.Close(t.Context()), "Close")
		check.Equal(t, time.Since(began), time.Minute, "Close took")
		(<-leader).want(t, "v", false)
		(<-follower).want(t, "v", true)
	})
}

// TestCloseEndsWithItsContext: running attempts continue and record their outcome.
func TestCloseEndsWithItsContext(t *testing.T) {
	eachEntryPoint(t, func(t *testing.T, d entryPoint) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", d.o).Call(me, "k", "in")
		leader := d.later(t, p, call, takes(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded, "Close")
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
		check.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded, "Close")
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
		check.NoError(t, p.Close(t.Context()), "Close after it ended")
	})
}
