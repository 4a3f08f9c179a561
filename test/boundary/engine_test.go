package boundary_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
)

// outerMode is one way to run the outer operation.
type outerMode struct {
	plan plan
	// run calls the outer operation once. body is its function; it receives a
	// function that makes one effect in this mode.
	run func(ctx context.Context, w *fixture, c semel.Call, body body) error
	// fails is the expected outcome if the function returns an error, and panics if
	// it panics.
	fails, panics outcome
	// ofContext is fails for the error of a context. Nil: the same.
	ofContext *outcome
	// succeeds is the expected outcome of a success if that is an error. Nil: no
	// error.
	succeeds *outcome
}

// outcome is what an outer operation that did not succeed leaves.
type outcome struct {
	state   store.State
	verdict store.Verdict
	// effects is the number of effects after the same call was made twice.
	effects int
}

func runDo(ctx context.Context, w *fixture, c semel.Call, body body) error {
	_, _, err := semel.Do(ctx, w, c, func(ctx context.Context) (string, error) { return "done", body(ctx, w.effect) })
	return err
}

func runInTx(ctx context.Context, w *fixture, c semel.Call, body body) error {
	_, _, err := semel.Do(ctx, w, c, func(ctx context.Context) (string, error) {
		return semel.InTx(ctx, w.engine, func(ctx context.Context, tx *memory.Tx) (string, error) {
			return "done", body(ctx, w.effectIn(tx))
		})
	})
	return err
}

func runDoTx(ctx context.Context, w *fixture, c semel.Call, body body) error {
	_, _, err := semel.DoTx(ctx, w.engine, c, func(ctx context.Context, tx *memory.Tx) (string, error) {
		return "done", body(ctx, w.effectIn(tx))
	})
	return err
}

func runDoBatch(ctx context.Context, w *fixture, c semel.Call, body body) error {
	_, _, err := semel.DoBatch(ctx, w.engine, c, func(ctx context.Context) (string, memory.Batch, error) {
		var batch memory.Batch
		err := body(ctx, func() {
			batch = append(batch, func(tx *memory.Tx) error { w.effectIn(tx)(); return nil })
		})
		return "done", batch, err
	})
	return err
}

const lease = time.Minute

// nothingFound is a probe that finds no effect.
func nothingFound(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil }

// raised raises a fence.
func raised(context.Context, semel.Scope, string, uint32) error { return nil }

// engineModes are the ways to run an operation with package semel alone.
func engineModes() map[string]outerMode {
	inDoubt := outcome{store.InDoubt, store.Unknown, 1}
	secondCall := outcome{store.Pending, store.Unknown, 2}
	released := outcome{store.Pending, store.NotCommitted, 0}
	gone := outcome{store.Absent, store.NotCommitted, 0}
	kept := outcome{store.Failed, store.NotCommitted, 0}
	every5 := &semel.Retry{Redelivered: true, Delay: func(int) time.Duration { return 5 * time.Second }}
	return map[string]outerMode{
		"Do":                  {run: runDo, fails: inDoubt, panics: inDoubt},
		"Do, Hold, Keep":      {plan: plan{Policy: semel.Hold(), OnError: semel.Keep}, run: runDo, fails: inDoubt, panics: inDoubt},
		"Do, Heal":            {plan: plan{Policy: semel.Heal(nothingFound)}, run: runDo, fails: inDoubt, panics: inDoubt},
		"Do, Fenced":          {plan: plan{Policy: semel.Fenced(raised, nothingFound)}, run: runDo, fails: secondCall, panics: secondCall},
		"Do, Keyed":           {plan: plan{Policy: semel.Keyed(), OnError: semel.Keep}, run: runDo, fails: secondCall, panics: secondCall},
		"Do, AtLeastOnce":     {plan: plan{Policy: semel.AtLeastOnce()}, run: runDo, fails: secondCall, panics: secondCall},
		"Do, Retry":           {plan: plan{Retry: every5}, run: runDo, fails: inDoubt, panics: inDoubt},
		"Do, Retry, repeated": {plan: plan{Policy: semel.AtLeastOnce(), Retry: every5}, run: runDo, fails: secondCall, panics: secondCall},
		"InTx":                {plan: plan{Policy: semel.Atomic()}, run: runInTx, fails: released, panics: released},
		"InTx, Keep":          {plan: plan{Policy: semel.Atomic(), OnError: semel.Keep}, run: runInTx, fails: kept, panics: released, ofContext: &released},
		"InTx, Retry":         {plan: plan{Policy: semel.Atomic(), Retry: every5}, run: runInTx, fails: released, panics: released},
		"DoTx":                {run: runDoTx, fails: gone, panics: gone},
		"DoTx, optimistic":    {plan: plan{Optimistic: true}, run: runDoTx, fails: gone, panics: gone},
		"DoTx, Keep":          {plan: plan{OnError: semel.Keep}, run: runDoTx, fails: kept, panics: gone, ofContext: &gone},
		"DoTx, Retry":         {plan: plan{Retry: every5}, run: runDoTx, fails: released, panics: gone},
		"DoTx, generations":   {plan: plan{Generation: time.Hour}, run: runDoTx, fails: gone, panics: gone},
		"DoTx, leased":        {plan: plan{Policy: semel.Atomic(), Lease: lease}, run: runDoTx, fails: released, panics: released},
		"DoTx, leased, Keep":  {plan: plan{Policy: semel.Atomic(), Lease: lease, OnError: semel.Keep}, run: runDoTx, fails: kept, panics: released, ofContext: &released},
		"DoTx, leased, Retry": {plan: plan{Policy: semel.Atomic(), Lease: lease, Retry: every5}, run: runDoTx, fails: released, panics: released},
		"DoBatch":             {run: runDoBatch, fails: gone, panics: gone},
		"DoBatch, Keep":       {plan: plan{OnError: semel.Keep}, run: runDoBatch, fails: kept, panics: gone, ofContext: &gone},
		"DoBatch, Retry":      {plan: plan{Retry: every5}, run: runDoBatch, fails: released, panics: gone},
	}
}

// withoutInTx are ways to run an operation with policy Atomic whose function never calls
// InTx. Its errors prove nothing, and its success is a programming error.
func withoutInTx() map[string]outerMode {
	inDoubt := outcome{store.InDoubt, store.Unknown, 1}
	secondCall := outcome{store.Pending, store.Unknown, 2}
	every5 := &semel.Retry{Redelivered: true, Delay: func(int) time.Duration { return 5 * time.Second }}
	atomically := outerMode{run: runDo, fails: secondCall, panics: secondCall, succeeds: &inDoubt}
	kept, retried := atomically, atomically
	atomically.plan = plan{Policy: semel.Atomic()}
	kept.plan = plan{Policy: semel.Atomic(), OnError: semel.Keep}
	retried.plan = plan{Policy: semel.Atomic(), Retry: every5}
	return map[string]outerMode{"Do, Atomic": atomically, "Do, Atomic, Keep": kept, "Do, Atomic, Retry": retried}
}

// outerModes are all ways to run an outer operation.
func outerModes() map[string]outerMode {
	all := engineModes()
	maps.Copy(all, withoutInTx())
	return all
}

// TestRule14InnerEndingDecidesNothing: however an inner call ends, the outer operation
// ends as with any other error of its function.
func TestRule14InnerEndingDecidesNothing(t *testing.T) {
	eachInnerCall(t, outerModes(), testInnerCall)
}

// body is the function of an outer operation. It makes one effect and then the
// inner call, and returns the inner call's error.
type body = func(ctx context.Context, effect func()) error

// body returns the function whose inner call ends like that in w.
func (e innerCall) body(t *testing.T, w *fixture, shape func(error) error) body {
	t.Helper()
	inner, called := e.prepare(t, w), false
	return func(ctx context.Context, effect func()) error {
		effect()
		isFirst := !called
		called = true
		err := inner(ctx)
		if isFirst {
			e.wantInspectable(t, err)
		}
		if err != nil {
			return shape(err)
		}
		return nil
	}
}

func testInnerCall(t *testing.T, by outerMode, end innerCall, shape func(error) error) {
	t.Helper()
	w := newFixture(t)
	body := end.body(t, w, shape)
	outer := semel.Define("outer", by.plan).Call(caller, "outer", "in")
	call := func() (err error, panicked bool) {
		defer func() { panicked = recover() != nil }()
		err = by.run(t.Context(), w, outer, body)
		return err, false
	}
	err, panicked := call()
	state := w.record(t, outer).State
	progress, _ := admin.ProgressOf(w.record(t, outer))
	if panicked != end.panics {
		t.Fatalf("panicked: %v, want %v", panicked, end.panics)
	}
	isSuccess := end.wantError == nil && !end.panics
	if isSuccess && by.succeeds == nil {
		if err != nil || by.plan.Generation == 0 && state != store.Succeeded {
			t.Errorf("the outer call ended with %v, and its record is %v", err, state)
		}
		return
	}
	want := by.fails
	switch {
	case isSuccess:
		want = *by.succeeds
	case end.panics:
		want = by.panics
	case end.ofContext && by.ofContext != nil:
		want = *by.ofContext
	}
	if by.plan.Generation == 0 && state != want.state {
		t.Errorf("the outer record is %v, want %v", state, want.state)
	}
	if !end.panics {
		wantAnswer(t, err, by, want, end)
	}
	if by.plan.Retry != nil && want.state == store.Pending && (progress.Errors != 1 || progress.Snoozes != 0) {
		t.Errorf("the outer record counts %+v, want one error", progress)
	}
	w.ahead.Add(int64(5 * time.Second))
	_, _ = call()
	check.Equal(t, w.effects(), want.effects, "after two calls there: effects")
}

// wantAnswer checks the answer to the caller of the outer operation.
func wantAnswer(t *testing.T, err error, by outerMode, want outcome, end innerCall) {
	t.Helper()
	check.Equal(t, semel.VerdictOf(err), want.verdict, "VerdictOf(%v)", err)
	_, isFailure := errtype.Find[*semel.Failure](err)
	check.Equal(t, isFailure, (want.state == store.Failed), "%v is a *Failure: want %v", err, !isFailure)
	if semel.Replayed(err) {
		t.Errorf("Replayed(%v) = true, want false: it is the first call", err)
	}
	var outcome time.Duration
	switch {
	case by.plan.Retry != nil && want.state == store.Pending:
		outcome = 5 * time.Second
	case want.verdict == store.Unknown:
		outcome = time.Second
	}
	check.Equal(t, semel.RetryAfter(err), outcome, "RetryAfter(%v)", err)
	if isFailure {
		return
	}
	attempt, ok := errtype.Find[*semel.AttemptError](err)
	if !ok || attempt.Operation != "outer" || attempt.State != want.state {
		t.Errorf("got %#v, want an AttemptError of the outer operation with state %v", attempt, want.state)
	}
	wantNoSentinel(t, err, want)
	if end.wrapsErrInner && !errors.Is(err, errInner) {
		t.Errorf("%v does not contain the user's own error", err)
	}
	if end.ofContext && !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not contain the context's error", err)
	}
}

// wantNoSentinel checks that the error of the outer operation does not answer for the
// inner one.
func wantNoSentinel(t *testing.T, err error, want outcome) {
	t.Helper()
	for _, sentinel := range []error{
		semel.ErrInvalid, semel.ErrInProgress, semel.ErrInDoubt, semel.ErrMismatch, semel.ErrKeyExpired,
		semel.ErrResultUnavailable, semel.ErrLeaseLost, semel.ErrUnavailable, semel.ErrClosed, semel.ErrCancelled,
		store.ErrConflict, store.ErrInterrupted, store.ErrTxEndedByHandler, store.ErrNoPartition, store.ErrSuperseded, store.ErrNotStarted,
	} {
		if errors.Is(err, sentinel) {
			t.Errorf("errors.Is(%v, %q) is true, and speaks about the inner operation", err, sentinel)
		}
	}
	if got := errors.Is(err, semel.ErrOutcomeUnknown); got != (want.verdict == store.Unknown) {
		t.Errorf("%v is ErrOutcomeUnknown: %v, want %v", err, got, !got)
	}
	if field, ok := errtype.Find[*semel.FieldError](err); ok {
		t.Errorf("%v contains %v, which speaks about the inner call", err, field)
	}
}
