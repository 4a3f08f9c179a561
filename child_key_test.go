package semel_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

// TestChildKeyIsTheSameInEveryAttempt, also in another process.
func TestChildKeyIsTheSameInEveryAttempt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := memory.New(memory.Options{})
		call := plain("op", semel.OperationOptions[string]{Policy: semel.Keyed()}).Call(me, "k", "in")
		var keys []string
		for range 3 {
			do(t.Context(), start(t, mem, semel.Options{}), call, func(ctx context.Context) (string, error) {
				key, err := semel.ChildKey(ctx, "charge")
				keys = append(keys, key)
				check.NoError(t, err, "ChildKey")
				return "", errBoom
			})
		}
		if len(keys) != 3 || keys[0] != keys[1] || keys[1] != keys[2] {
			t.Errorf("the attempts gave %q, want one key three times", keys)
		}
		if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(keys[0]) {
			t.Errorf("the key is %q, want 32 hexadecimal digits", keys[0])
		}
		// Receivers remember it, so no version of this package may change it.
		if want := "f6c1dbbb99fca97d6e44f0daab52f140"; keys[0] != want {
			t.Errorf("the key is %q, want %q", keys[0], want)
		}
		// An operator derives it from the record.
		record := check.Must(admin.Read(t.Context(), start(t, mem, semel.Options{}), call.ID()))(t)
		check.Equal(t, admin.ChildKey(record, "charge"), keys[0], "ChildKey of the record")
	})
}

// TestChildKeyInline is that of the same call leased: it is the operation's.
func TestChildKeyInline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		key, _, err := semel.DoTx(t.Context(), p.Engine, theCall, func(ctx context.Context, _ *memory.Tx) (string, error) {
			return semel.ChildKey(ctx, "charge")
		})
		if want := "f6c1dbbb99fca97d6e44f0daab52f140"; key != want || err != nil {
			t.Errorf("ChildKey = %q, %v, want %q", key, err, want)
		}
	})
}

// TestChildKeysAreDistinct for every name, key, scope and operation, also where
// their texts joined are equal.
func TestChildKeysAreDistinct(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, _ := solo(t, semel.Options{})
		seen := map[string]string{}
		ask := func(operation string, scope semel.Scope, key string, names ...string) {
			a := begin(t, p, plain(operation, semel.OperationOptions[string]{}).Call(scope, key, "in"))
			for _, name := range names {
				label := operation + "/" + scope.Bytes() + "/" + key + "/" + name
				child := a.ChildKey(name)
				if other, taken := seen[child]; taken {
					t.Errorf("%s and %s have the same child key", label, other)
				}
				seen[child] = label
			}
			if _, err := a.End("v", nil); err != nil {
				t.Errorf("End: %v", err)
			}
		}
		ask("op", me, "k", "", "a", "b", "ab")
		ask("op", me, "ka", "", "b")
		ask("op", semel.ScopeOf("m", "e"), "k", "a")
		ask("op", semel.ScopeOf("mek"), "x", "a")
		ask("op", semel.Shared(), "k", "a")
		ask("opme", me, "k", "a")
	})
}

// TestChildKeyOutsideAnAttempt is an error, never a random key.
func TestChildKeyOutsideAnAttempt(t *testing.T) {
	t.Parallel()
	key, err := semel.ChildKey(t.Context(), "charge")
	wantField(t, err, "ctx")
	check.Equal(t, key, "", "got the key")
}
