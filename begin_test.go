package semel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// begin claims call, and fails the test if that does not lead an attempt.
func begin(t *testing.T, p *process, call semel.Call) *semel.Attempt {
	t.Helper()
	a, out, err := adapter.Begin(t.Context(), p, call)
	if err != nil || out != nil || a == nil {
		t.Fatalf("Begin = %v, %v, %v, want an attempt", a, out, err)
	}
	return a
}

func TestBeginAndEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{}).Call(semel.ScopeOf("a", "b"), "k", "in")
		a := begin(t, p, call)
		r := wantState(t, mem, call, store.InProgress)
		if a.Number() != 1 || a.Token() != r.Token || a.Context().Err() != nil {
			t.Errorf("attempt %d, token %+v, context %v; want 1, %+v, running", a.Number(), a.Token(), a.Context().Err(), r.Token)
		}
		c := a.Call()
		if c.ID() != call.ID() || c.Key() != "k" || c.Operation() != "op" || c.Scope() != semel.ScopeOf("a", "b") {
			t.Errorf("Call() = %q of %q in %q", c.Key(), c.Operation(), c.Scope().Bytes())
		}
		if of, ok := semel.AttemptOf(a.Context()); !ok || of != a {
			t.Errorf("AttemptOf = %v, %v, want the attempt", of, ok)
		}
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
		check.Fails(t, a.Context().Err(), "the context goes on after End")
		again, out, err := adapter.Begin(t.Context(), p, call)
		if again != nil {
			t.Error("Begin claims what succeeded")
		}
		wantOutcome(t, out, err, "v", true)
	})
}

func wantOutcome(t *testing.T, out *adapter.Outcome, err error, v string, replayed bool) {
	t.Helper()
	if err != nil || out == nil {
		t.Errorf("got %v, %v, want an outcome", out, err)
		return
	}
	var got string
	if err := out.Decode(&got); err != nil || got != v || out.Replayed != replayed || out.Record.State != store.Succeeded {
		t.Errorf("outcome %q, replayed %v, %v, %v; want %q, replayed %v, Succeeded", got, out.Replayed, out.Record.State, err, v, replayed)
	}
}

func TestEndTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		a := begin(t, p, theCall)
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
		_, err = a.End("w", nil)
		wantField(t, err, "Attempt")
		a.Abandon() // after End it does nothing
		do(t.Context(), p, theCall, never(t)).want(t, "v", true)
		wantState(t, mem, theCall, store.Succeeded)
	})
}

func TestAbandon(t *testing.T) {
	eachPolicy(t, func(t *testing.T, pc policyCase) {
		p, mem := solo(t, semel.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: pc.p}).Call(me, "k", "in")
		a := begin(t, p, call)
		a.Abandon()
		a.Abandon()
		_, err := a.End("v", nil)
		wantField(t, err, "Attempt")
		wantAfterAbrupt(t, p, mem, call, pc)
	})
}

// TestAdapterEncodes: what an adapter stores instead of what the function returned.
func TestAdapterEncodes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, mem := solo(t, semel.Options{})
		call := atomicCallOf("k")
		a := begin(t, p, call)
		a.AdaptWith(adapts{encode: func(v any) (any, error) {
			if v == "first" {
				return nil, errBoom
			}
			return semel.Raw("<" + v.(string) + ">"), nil
		}})
		if _, err := semel.InTx(a.Context(), p.Engine, puts("one", "first")); !errors.Is(err, errBoom) {
			t.Errorf("InTx: %v, want the encoder's error", err)
		}
		wantEffect(t, mem, "one", false)
		check.Result(semel.InTx(a.Context(), p.Engine, puts("two", "second")))(t, "second", "InTx")
		out, err := a.End(nil, nil)
		var got semel.Raw
		if err != nil || out.Decode(&got) != nil || string(got) != "<second>" {
			t.Errorf("stored %q, %v, want what the adapter said", got, err)
		}
	})
}

// adapts is an adapter of functions, each of which may be nil.
type adapts struct {
	encode func(v any) (any, error)
	undone func()

	refuses bool
}

func (a adapts) Encode(v any) (any, error) {
	if a.encode == nil {
		return v, nil
	}
	return a.encode(v)
}

func (a adapts) Claims() bool { return !a.refuses }

func (a adapts) Undone() {
	if a.undone != nil {
		a.undone()
	}
}

// TestAdapterUndo: an adapter learns that what it took for the outcome is none.
func TestAdapterUndo(t *testing.T) {
	type row struct {
		commit fault
		swap   fault // of the certificate
		fn     txHandler
		want   int
	}
	eachInBubble(t, map[string]row{
		"committed":        {fn: puts("e", "v")},
		"proven committed": {commit: commitApplied(), fn: puts("e", "v")},
		"function's error": {fn: failsAfter(errBoom), want: 1},
		"refused":          {commit: commitRefused(), fn: puts("e", "v"), want: 1},
		"refuted":          {commit: commitDropped(), fn: puts("e", "v"), want: 1},
		"still under way":  {commit: commitOpen(), fn: puts("e", "v"), want: 1},
		"no answer":        {commit: commitDropped(), swap: fault{Before: errCut}, fn: puts("e", "v"), want: 1},
	}, func(t *testing.T, tt row) {
		p, _ := solo(t, semel.Options{})
		a := begin(t, p, atomicCallOf("k"))
		undone := 0
		a.AdaptWith(adapts{undone: func() { undone++ }})
		p.faults.Decide(func(r request) fault {
			if r.Method == "Swap" {
				return tt.swap
			}
			return commits(tt.commit)(r)
		})
		v, err := semel.InTx(a.Context(), p.Engine, tt.fn)
		if undone != tt.want || (err == nil) != (tt.want == 0) {
			t.Errorf("InTx = %q, %v; undone %d times, want %d", v, err, undone, tt.want)
		}
		p.faults.Decide(nil)
		if tt.commit.Open {
			_ = p.faults.Release()
		}
		_, _ = a.End(v, err)
	})
}

func TestAttemptOfOutsideAnAttempt(t *testing.T) {
	t.Parallel()
	if a, ok := semel.AttemptOf(t.Context()); ok || a != nil {
		t.Errorf("AttemptOf = %v, %v, want none", a, ok)
	}
}

// TestEndAfterTheCallerCanceled: an adapter's caller hung up long ago.
func TestEndAfterTheCallerCanceled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		ctx, hangUp := context.WithCancel(t.Context())
		a, _, err := adapter.Begin(ctx, p, theCall)
		check.Require(t, err)
		hangUp()
		pass(time.Hour)
		out, err := a.End("v", nil)
		wantOutcome(t, out, err, "v", false)
	})
}
