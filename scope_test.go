package semel_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel"
)

func TestScopeParts(t *testing.T) {
	t.Parallel()
	tests := [][]string{{"a"}, {"a", "b"}, {"ab"}, {"1:a"}, {"1:", ":1"}, {"\x00", "ü", "*"}}
	seen := map[semel.Scope]bool{}
	for _, parts := range tests {
		s := semel.ScopeOf(parts...)
		if diff := cmp.Diff(parts, s.Parts()); diff != "" {
			t.Errorf("ScopeOf(%q).Parts() (-want +got):\n%s", parts, diff)
		}
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
