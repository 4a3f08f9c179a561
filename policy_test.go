package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
)

func TestPolicyNames(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]semel.Policy{
		"unset": {}, "Atomic": semel.Atomic(), "Hold": semel.Hold(), "Heal": semel.Heal(nil),
		"Fenced": semel.Fenced(nil, nil), "Keyed": semel.Keyed(), "AtLeastOnce": semel.AtLeastOnce(),
	} {
		if got := p.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
