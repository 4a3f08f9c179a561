package semel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/adapter"
	"github.com/semelgo/semel/internal/check"
)

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

// sameAt calls an operation with an input and with the place of it, which is the same
// request and reads the same.
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
		if diff := cmp.Diff(called.Fingerprint, placed.Fingerprint); diff != "" {
			t.Errorf("fingerprints (-called +placed):\n%s", diff)
		}
		if diff := cmp.Diff(called.Input, placed.Input); diff != "" || (o.Retry != nil) != (len(placed.Input) > 0) {
			t.Errorf("stored inputs (-called +placed):\n%s\nis %q", diff, placed.Input)
		}
	}
}

// TestCallAtIsCall: the place of an input is no part of what it is.
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

// visitAt says itself what makes it the same request, and can be compared.
type visitAt struct{ Place string }

func (v visitAt) AppendFingerprint(b []byte) ([]byte, error) { return append(b, v.Place...), nil }

// TestCallAtRejectsWhatCallRejects, with what is wrong.
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
