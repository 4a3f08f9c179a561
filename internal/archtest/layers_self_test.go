//go:build !race

package archtest_test

import "testing"

// TestUnitOf tests the table of layers, because the import rule depends on it.
func TestUnitOf(t *testing.T) {
	for _, row := range []struct {
		name string
		unit string
		at   layer
	}{
		{"semel", "semel", core},
		{"store", "store", contract},
		{"store/sqlite", "store/sqlite", stores},
		{"store/sqlite/internal/sql", "store/sqlite", stores},
		{"store/storetest", "store/storetest", conformance},
		{"internal/key", "internal/key", ground},
		{"internal/sim", "internal/sim", surfaces},
		{"internal/sim/cmd/explore", "internal/sim", surfaces},
		{"examples/chat", "examples/chat", programs},
		{"internal/archtest", "internal/archtest", repositoryTests},
	} {
		unit, at, ok := unitOf(row.name)
		if unit != row.unit || at != row.at || !ok {
			t.Errorf("unitOf(%q) = %q, %d, %t, want %q, %d", row.name, unit, at, ok, row.unit, row.at)
		}
	}
	if unit, _, ok := unitOf("util"); ok {
		t.Errorf("unitOf(%q) = %q: an unknown package has a layer", "util", unit)
	}
}
