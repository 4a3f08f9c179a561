package failures_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/event"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

// withSecret has a field that JSON does not contain.
type withSecret struct {
	Name   string
	secret string
}

// The first caller and its retries receive what was stored (rule 15), also if the
// function returned something else.
func equalAnswers[Tx any](t *testing.T, w *fixture[Tx], by handlerMode) {
	o := w.operation(by)
	const large = int64(1<<53 + 1)
	for name, v := range map[string]any{
		"large": large, "list": []any{large, "a"}, "not UTF-8": "\xff\xfe", "unexported": withSecret{"n", "s"}, "ordinary": "paid",
	} {
		call := semel.Define(w.op("answers"), o).Call(semel.ScopeOf("ann"), name, "in")
		var first any
		for n := range 3 {
			got, replayed, err := do(t.Context(), w, w.runner, call, func(_ context.Context, effect func(string) error) (any, error) {
				return v, effect("ann/" + name)
			})
			if n == 0 {
				first = got
			}
			if err != nil || replayed != (n > 0) || !reflect.DeepEqual(got, first) {
				t.Errorf("%s: answer %d = %#v, replayed %v, %v, want %#v", name, n, got, replayed, err, first)
			}
		}
		w.wantEffects(t, "ann/"+name, 1)
	}
	if n := w.seen.count(event.Altered); n != 4 {
		t.Errorf("%d alarms %q, want one for each of the 4 values that JSON changes", n, event.Altered)
	}
}

// Under Atomic only a rolled-back transaction of InTx proves that there was no
// effect (rule 8): the function may have had an effect elsewhere.
func withoutInTx[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	boom := errors.New("boom")
	op := semel.Define(w.op("without"), semel.OperationOptions[string]{Policy: semel.Atomic(), Lease: longLease})
	for name, tt := range map[string]struct {
		fn      func(ctx context.Context) error
		verdict store.Verdict
		state   store.State
	}{
		"error":   {func(context.Context) error { return boom }, store.Unknown, store.Pending},
		"marked":  {func(context.Context) error { return semel.NotCommitted(boom) }, store.NotCommitted, store.Pending},
		"success": {func(context.Context) error { return nil }, store.Unknown, store.InDoubt},
		"rolled back": {func(ctx context.Context) error {
			_, err := semel.InTx(ctx, w.engine, func(ctx context.Context, tx Tx) (string, error) {
				return "", errors.Join(boom, w.effect(ctx, tx, "ann/rolled back"))
			})
			return err
		}, store.NotCommitted, store.Pending},
	} {
		call := op.Call(semel.ScopeOf("ann"), name, "in")
		_, _, err := semel.Do(t.Context(), w.engine, call, func(ctx context.Context) (string, error) { return "v", tt.fn(ctx) })
		check.Equal(t, semel.VerdictOf(err), tt.verdict, "%s: VerdictOf(%v)", name, err)
		r, _, err := admin.Get(t.Context(), w.engine, op.Name(), semel.ScopeOf("ann"), name)
		if err != nil || r.State != tt.state || r.Tainted != (tt.verdict == store.Unknown) {
			t.Errorf("%s: the record is %v, tainted %v, %v, want %v", name, r.State, r.Tainted, err, tt.state)
		}
	}
	w.wantEffects(t, "ann/rolled back", 0)
}

// A record that is settled by an engine without the operation's definition is kept
// for the retention in the record (rule 16).
func storedRetention[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	const kept = 30 * 24 * time.Hour
	op := semel.Define(w.op("retention"), semel.OperationOptions[string]{Retention: kept})
	call := op.Call(semel.ScopeOf("ann"), "k", "in")
	boom := errors.New("boom")
	if _, _, err := semel.Do(t.Context(), w.runner, call, func(context.Context) (string, error) { return "", boom }); !errors.Is(err, boom) {
		t.Errorf("Do = %v, want the function's error", err)
	}
	r, err := admin.Resolve(t.Context(), w.another(t), admin.Resolution{ID: call.ID(), To: store.Succeeded, Actor: "me", Reason: "seen"})
	check.Result(r.State, err)(t, store.Succeeded, "Resolve")
	if r, _, err = admin.Get(t.Context(), w.runner, op.Name(), semel.ScopeOf("ann"), "k"); err != nil || r.Expire < kept-time.Hour {
		t.Errorf("the record is kept for another %v, %v, want the %v of its operation", r.Expire, err, kept)
	}
}

// The marks of an inner operation's error do not affect the outer operation (rule
// 14).
func innerMarks[Tx any](t *testing.T, w *fixture[Tx], _ handlerMode) {
	boom := errors.New("boom")
	inner := semel.Define(w.op("inner"), semel.OperationOptions[string]{}).Call(semel.ScopeOf("ann"), "k", "in")
	op := semel.Define(w.op("outer"), semel.OperationOptions[string]{})
	for name, mark := range map[string]func(error) error{"NotCommitted": semel.NotCommitted, "Final": semel.Final} {
		outer := op.Call(semel.ScopeOf("ann"), name, "in")
		_, _, err := semel.Do(t.Context(), w.runner, outer, func(ctx context.Context) (string, error) {
			_, _, err := semel.Do(ctx, w.runner, inner, func(context.Context) (string, error) { return "", mark(boom) })
			return "", err
		})
		r, _, gerr := admin.Get(t.Context(), w.runner, op.Name(), semel.ScopeOf("ann"), name)
		if semel.VerdictOf(err) != store.Unknown || r.State != store.InDoubt || gerr != nil {
			t.Errorf("%s within: %v with a record that is %v, %v, want Unknown and InDoubt", name, err, r.State, gerr)
		}
	}
}
