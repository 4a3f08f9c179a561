package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/guard"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

func isMismatch(err error) bool { return errors.Is(err, semel.ErrMismatch) }

func notFound(context.Context) (string, bool, error) { return "", false, nil }

// lockOptions are options with a policy.
func lockOptions(policy semel.Policy) semel.OperationOptions[string] {
	return semel.OperationOptions[string]{Policy: policy}
}

// policies are the policies of operations whose effect is outside of the database.
func policies() map[string]semel.Policy {
	raise := func(context.Context, semel.Scope, string, uint32) error { return nil }
	look := func(context.Context, semel.Scope, string) (any, bool, error) { return nil, false, nil }
	return map[string]semel.Policy{
		"Hold": semel.Hold(), "Heal": semel.Heal(look), "Fenced": semel.Fenced(raise, look),
		"Keyed": semel.Keyed(), "AtLeastOnce": semel.AtLeastOnce(),
	}
}

// TestDo: check runs before execute, which receives the number of the attempt. A failed
// check leaves the key free under every policy. A found effect is a replay, and later
// calls are answered from the record.
func TestDo(t *testing.T) {
	t.Parallel()
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := inMemory(t, semel.Options{})
			op := semel.Define("act", lockOptions(policy))
			executed := 0
			do := func(key string, check func(context.Context) (string, bool, error)) (string, bool, error) {
				return guard.Do(t.Context(), e, op.Call(me, key, ""), check, func(_ context.Context, fence uint32) (string, error) {
					executed++
					if want := uint32(2); fence != want {
						t.Errorf("the fence is %d, want %d", fence, want)
					}
					return "executed", nil
				})
			}
			_, _, err := do("a", func(context.Context) (string, bool, error) { return "", false, errRefused })
			if !errors.Is(err, errRefused) || semel.VerdictOf(err) != store.NotCommitted || executed != 0 {
				t.Errorf("a failed check: %v, %d executed, want a proof that nothing happened", err, executed)
			}
			for _, replays := range []bool{false, true} {
				if v, replayed, err := do("a", notFound); v != "executed" || replayed != replays || err != nil {
					t.Errorf("got %q, %v, %v, want replayed %v", v, replayed, err, replays)
				}
			}
			for range 2 {
				v, replayed, err := do("b", func(context.Context) (string, bool, error) { return "found", true, nil })
				if v != "found" || !replayed || err != nil {
					t.Errorf("a found effect: %q, %v, %v", v, replayed, err)
				}
			}
			check.Equal(t, executed, 1, "executed")
		})
	}
}

// TestDoAfterAnUnknownAttempt: the failed check of a later attempt proves nothing about
// an earlier one.
func TestDoAfterAnUnknownAttempt(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]store.State{"Fenced": store.Pending, "Keyed": store.Pending, "AtLeastOnce": store.Pending} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := inMemory(t, semel.Options{})
			o := lockOptions(policies()[name])
			o.OnError = semel.Keep
			op := semel.Define("act", o)
			call := op.Call(me, "a", "")
			_, _, err := guard.Do(t.Context(), e, call, notFound, func(context.Context, uint32) (string, error) { return "", errRefused })
			if !errors.Is(err, semel.ErrOutcomeUnknown) {
				t.Fatalf("got %v, want ErrOutcomeUnknown", err)
			}
			_, _, err = guard.Do(t.Context(), e, call, func(context.Context) (string, bool, error) { return "", false, errRefused },
				func(context.Context, uint32) (string, error) { return "", nil })
			var attempt *semel.AttemptError
			if !errors.As(err, &attempt) || attempt.Verdict != store.Unknown || attempt.State != want {
				t.Errorf("got %v, want an unknown outcome and the state %v", err, want)
			}
		})
	}
}

// TestDoAfterLosingTheLease: the context of check ends with a clear cause, execute is not
// called, and the answer of the other attempt is returned.
func TestDoAfterLosingTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := memory.New(memory.Options{})
		faulty := storetest.NewFaulty(records, nil)
		op := semel.Define("act", lockOptions(policies()["Fenced"]))
		o := semel.Options{Lease: time.Minute, Survive: store.NoFailure}
		paused, other := must(semel.NewRunner(faulty, o)), must(semel.NewRunner(records, o))
		call := op.Call(me, "a", "")
		executed := false
		v, replayed, err := guard.Do(t.Context(), paused, call, func(ctx context.Context) (string, bool, error) {
			faulty.Decide(func(storetest.Call) storetest.Fault { return storetest.Fault{Before: errRefused} })
			<-ctx.Done()
			check.ErrorIs(t, context.Cause(ctx), semel.ErrLeaseLost, "the cause")
			if v, _, err := guard.Do(t.Context(), other, call, notFound, func(_ context.Context, fence uint32) (string, error) {
				return "by attempt " + string('0'+rune(fence)), nil
			}); v != "by attempt 2" || err != nil {
				t.Errorf("the takeover: %q, %v", v, err)
			}
			faulty.Decide(nil)
			return "", false, nil
		}, func(context.Context, uint32) (string, error) {
			executed = true
			return "by attempt 1", nil
		})
		if executed || v != "by attempt 2" || !replayed || err != nil {
			t.Errorf("got %q, %v, %v, executed %v, want the answer of attempt 2", v, replayed, err, executed)
		}
		for _, e := range []semel.Runner{paused, other} {
			_ = e.Close(t.Context())
		}
	})
}

// TestDoContinuesAPanic: a panic of check or execute continues, and the key is not stuck.
func TestDoContinuesAPanic(t *testing.T) {
	t.Parallel()
	e := inMemory(t, semel.Options{})
	op := semel.Define("act", lockOptions(policies()["Fenced"]))
	panics := func() (v any) {
		defer func() { v = recover() }()
		_, _, _ = guard.Do(t.Context(), e, op.Call(me, "a", ""), func(context.Context) (string, bool, error) { panic("check") }, nil)
		return nil
	}
	if v := panics(); v != "check" {
		t.Errorf("recovered %v", v)
	}
	v, _, err := guard.Do(t.Context(), e, op.Call(me, "a", ""), notFound, func(context.Context, uint32) (string, error) { return "executed", nil })
	check.Result(v, err)(t, "executed", "after the panic")
}
