package semel_test

import (
	"context"
	"crypto/sha256"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/admin"
	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store/memory"
)

// visit is an input with a method of its own for its fingerprint.
type visit struct{ place, trace string }

func (v visit) AppendFingerprint(b []byte) ([]byte, error) {
	if v.place == "" {
		return b, errBoom
	}
	return append(b, v.place...), nil
}

// An input may have a method of its own for its fingerprint. The method counts for a whole input and
// for a value that one of the Fingerprints chooses.
func TestInputChoosesItsFingerprint(t *testing.T) {
	eachInBubble(t, map[string]*semel.Operation[visit]{
		"the input":     semel.Define("visit", semel.OperationOptions[visit]{}),
		"of the fields": semel.Define("visit", semel.OperationOptions[visit]{Fingerprints: []func(visit) any{func(v visit) any { return v }}}),
	}, func(t *testing.T, op *semel.Operation[visit]) {
		p, mem := solo(t, semel.Options{})
		ask := func(v visit) answer { return do(t.Context(), p, op.Call(me, "k", v), returns("seen")) }
		ask(visit{"Oslo", "trace 1"}).want(t, "seen", false)
		ask(visit{"Oslo", "trace 2"}).want(t, "seen", true)
		ask(visit{"Rome", "trace 1"}).wantErr(t, semel.ErrMismatch)
		ask(visit{}).wantErr(t, semel.ErrInvalid)
		sum := sha256.Sum256([]byte("Oslo"))
		got := record(t, mem, op.Call(me, "k", visit{"Oslo", ""})).Fingerprint
		check.NoDiff(t, cmp.Diff(append([]byte{4, got[1]}, sum[:16]...), got), "stored fingerprint")
	})
}

// If an input embeds a type with such a method, its other fields count too.
func TestFingerprintCoversFieldsBesideAnEmbeddedType(t *testing.T) {
	t.Parallel()
	type fetch struct {
		*url.URL

		Body string
	}
	op := semel.Define("fetch", semel.OperationOptions[fetch]{})
	p, _ := solo(t, semel.Options{})
	at := &url.URL{Host: "example.com"}
	do(t.Context(), p, op.Call(me, "k", fetch{at, "a"}), returns("done")).want(t, "done", false)
	do(t.Context(), p, op.Call(me, "k", fetch{at, "b"}), never(t)).wantErr(t, semel.ErrMismatch)
}

// The buffers of one call hold no part of the input or the result of another call.
func TestConcurrentFingerprints(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	op := plain("op", semel.OperationOptions[string]{})
	var callers sync.WaitGroup
	for n := range 8 {
		callers.Go(func() {
			for size := range 200 {
				v := strings.Repeat(string(rune('a'+n)), size+1)
				call := op.Call(me, v+"k", v)
				do(t.Context(), p, call, returns(v)).want(t, v, false)
				do(t.Context(), p, op.Call(me, v+"k", v), never(t)).want(t, v, true)
			}
		})
	}
	callers.Wait()
}

// textEncoded has methods with a pointer receiver only.
type textEncoded struct{ Text string }

func (l *textEncoded) MarshalJSON() ([]byte, error) {
	return []byte(`"` + strings.ToUpper(l.Text) + `"`), nil
}

func (l *textEncoded) UnmarshalJSON(text []byte) error {
	l.Text = strings.ToLower(strings.Trim(string(text), `"`))
	return nil
}

func (l *textEncoded) AppendFingerprint(b []byte) ([]byte, error) { return append(b, "loud"...), nil }

// sameAt calls an operation with an input and with a pointer to it. Both are the same
// request with the same text.
func sameAt[In any](name string, in In, o semel.OperationOptions[In]) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		p, mem := solo(t, semel.Options{})
		op := semel.Define(name, o)
		for key, first := range map[string]semel.Call{"called": op.Call(me, "called", in), "placed": op.CallAt(me, "placed", &in)} {
			a := begin(t, p, first)
			if got, err := op.Input(a); err != nil || cmp.Diff(in, got) != "" {
				t.Errorf("%s: the input reads %v, %v, want %v", key, got, err, in)
			}
			check.Must(a.End("v", nil))(t)
			do(t.Context(), p, op.Call(me, key, in), returns("again")).want(t, "v", true)
			do(t.Context(), p, op.CallAt(me, key, &in), returns("again")).want(t, "v", true)
		}
		called, placed := record(t, mem, op.Call(me, "called", in)), record(t, mem, op.Call(me, "placed", in))
		check.NoDiff(t, cmp.Diff(called.Fingerprint, placed.Fingerprint), "fingerprints")
		if diff := cmp.Diff(called.Input, placed.Input); diff != "" || (o.Retry != nil) != (len(placed.Input) > 0) {
			t.Errorf("stored inputs (-called +placed):\n%s\nis %q", diff, placed.Input)
		}
	}
}

// TestCallAtIsCall: a call by a pointer to the input is the same request as a call by its value.
func TestCallAtIsCall(t *testing.T) {
	t.Parallel()
	t.Run("of fields", sameAt("fields", struct{ N int }{7}, semel.OperationOptions[struct{ N int }]{}))
	t.Run("with fingerprints", sameAt("chosen", struct{ N int }{7}, semel.OperationOptions[struct{ N int }]{
		Fingerprints: []func(struct{ N int }) any{func(v struct{ N int }) any { return v.N }},
	}))
	t.Run("which is stored", sameAt("stored", struct{ N int }{7}, semel.OperationOptions[struct{ N int }]{
		Policy: semel.AtLeastOnce(), Retry: &semel.Retry{},
	}))
	t.Run("raw", sameAt("raw", semel.Raw("bytes"), semel.OperationOptions[semel.Raw]{}))
	t.Run("says its own", sameAt("own", visitAt{"Oslo"}, semel.OperationOptions[visitAt]{}))
	t.Run("whose pointer says more", sameAt("loud", textEncoded{"word"}, semel.OperationOptions[textEncoded]{}))
	t.Run("is a pointer that says its own", sameAt("pointer", &textEncoded{"word"}, semel.OperationOptions[*textEncoded]{}))
	t.Run("is an interface of such", sameAt[semel.Fingerprinter]("asks", visitAt{"Oslo"}, semel.OperationOptions[semel.Fingerprinter]{}))
	t.Run("is an interface", sameAt[any]("any", "word", semel.OperationOptions[any]{}))
}

// visitAt is a comparable input with a method of its own for its fingerprint.
type visitAt struct{ Place string }

func (v visitAt) AppendFingerprint(b []byte) ([]byte, error) { return append(b, v.Place...), nil }

// TestCallAtRejectsWhatCallRejects: the error names what is wrong.
func TestCallAtRejectsWhatCallRejects(t *testing.T) {
	t.Parallel()
	p, _ := solo(t, semel.Options{})
	op := semel.Define("visit", semel.OperationOptions[visit]{})
	for name, call := range map[string]semel.Call{
		"no key":         op.CallAt(me, "", &visit{place: "Oslo"}),
		"no scope":       op.CallAt(semel.Scope{}, "k", &visit{place: "Oslo"}),
		"no fingerprint": op.CallAt(me, "k", new(visit)),
	} {
		if _, _, err := adapter.Begin(t.Context(), p, call); err == nil {
			t.Errorf("%s: begun", name)
		}
	}
}

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
		// It is the operation's: inline it is the same.
		inline, _ := solo(t, semel.Options{})
		doTx(t.Context(), inline, theCall, func(ctx context.Context, _ *memory.Tx) (string, error) {
			return semel.ChildKey(ctx, "charge")
		}).want(t, keys[0], false)
		// An operator derives it from the record.
		record := check.Must(admin.Read(t.Context(), start(t, mem, semel.Options{}), call.ID()))(t)
		check.Equal(t, admin.ChildKey(record, "charge"), keys[0], "ChildKey of the record")
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
			check.NoError(t, check.Err(a.End("v", nil)), "End")
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

func TestScopeParts(t *testing.T) {
	t.Parallel()
	tests := [][]string{{"a"}, {"a", "b"}, {"ab"}, {"1:a"}, {"1:", ":1"}, {"\x00", "ü", "*"}}
	seen := map[semel.Scope]bool{}
	for _, parts := range tests {
		s := semel.ScopeOf(parts...)
		check.NoDiff(t, cmp.Diff(parts, s.Parts()), "ScopeOf(%q).Parts()", parts)
		if seen[s] {
			t.Errorf("ScopeOf(%q) is equal to another one", parts)
		}
		seen[s] = true
	}
	for name, s := range map[string]semel.Scope{"zero": {}, "shared": semel.Shared(), "nothing": semel.ScopeOf(), "empty part": semel.ScopeOf("")} {
		if parts := s.Parts(); parts != nil {
			t.Errorf("%s scope has the parts %q, want none", name, parts)
		}
	}
	if seen[semel.Shared()] {
		t.Error("Shared is equal to a scope of a caller")
	}
}
