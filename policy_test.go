package semel_test

import (
	"testing"

	"github.com/semelgo/semel"
	"github.com/semelgo/semel/internal/check"
)

func TestPolicyNames(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]semel.Policy{
		"unset": {}, "Atomic": semel.Atomic(), "Hold": semel.Hold(), "Heal": semel.Heal(nil),
		"Fenced": semel.Fenced(nil, nil), "Keyed": semel.Keyed(), "AtLeastOnce": semel.AtLeastOnce(),
	} {
		check.Equal(t, p.String(), want, "String()")
	}
}
