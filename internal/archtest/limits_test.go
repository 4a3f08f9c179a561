//go:build !race

package archtest_test

import (
	"cmp"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// The limits of all packages.
const (
	maxCycle   = 8  // files of a package that refer to each other in a circle
	maxMethods = 40 // methods of a type
	maxExports = 60 // exported names of the root
)

// exceptions are higher limits, of the explorer and of a suite of tests. They may only fall.
var exceptions = map[string]int{"cycle internal/sim": 30, "internal/sim.world": 104, "internal/sim.actor": 44, "cycle store/storetest": 21}

// suites are types with a method for each test case, which have no limit.
var suites = map[string]bool{"cmd/semel/internal/conform.caseRun": true, "store/storetest.harness": true}

// TestLimits compares the packages with the limits.
func TestLimits(t *testing.T) {
	limit := func(what string, n, limit int) {
		if want := cmp.Or(exceptions[what], limit); n > want || want > limit && n < want {
			t.Errorf("%s: %d, want %d or lower", what, n, want)
		}
	}
	for _, p := range typedPackages(t) {
		limit("cycle "+p.name, p.largestCycle(), maxCycle)
		for name, n := range p.methods() {
			if of := p.name + "." + name; !suites[of] {
				limit(of, n, maxMethods)
			}
		}
		if p.name == "semel" {
			limit("exported names", p.exports(), maxExports)
		}
	}
}

// TestLargestCycle counts a cycle through a method and a field, and no file outside of it.
func TestLargestCycle(t *testing.T) {
	p := typeCheck(t, "planted", map[string]any{
		"a.go": "package p\ntype A struct{ n int }\nfunc (a A) First() { second(a) }",
		"b.go": "package p\nfunc second(a A) { third(a.n) }",
		"c.go": "package p\nfunc third(n int) { A{}.First(); leaf() }",
		"d.go": "package p\nfunc leaf() {}",
		"e.go": "package p\nfunc Top() { leaf(); third(1) }",
	}, nil)
	check.Equal(t, p.largestCycle(), 3, "the largest cycle: files")
	check.Equal(t, p.methods()["A"], 1, "A: methods")
	check.Equal(t, p.exports(), 2, "the package exports: names")
}
