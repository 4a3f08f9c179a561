//go:build !race

package archtest_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// The limits of all packages. testdata/limits.txt lists the numbers that are above them.
const (
	maxCycle   = 8  // files of a package that refer to each other in a circle
	maxMethods = 40 // methods of a type
	maxExports = 60 // exported names of the root
)

// suites are types with a method for each test case, which have no limit.
var suites = map[string]bool{
	"cmd/semel/internal/conform.caseRun": true,
	"store/storetest.harness":            true,
}

// TestLimits compares the packages with the limits. testdata/limits.txt lists each number
// that is above its limit. Such a number may only fall, and `make arch UPDATE=1` then
// lowers it in the file.
func TestLimits(t *testing.T) {
	allowed := readLimits(t)
	above := make(map[string]int)
	for _, p := range typedPackages(t) {
		add := func(what string, n, limit int) {
			if n > limit {
				above[what] = n
			}
		}
		add("cycle "+p.name, p.largestCycle(), maxCycle)
		for name, n := range p.methods() {
			if of := p.name + "." + name; !suites[of] {
				add("methods "+of, n, maxMethods)
			}
		}
		if p.name == "semel" {
			add("exports "+p.name, p.exports(), maxExports)
		}
	}
	for dir, n := range misnamedComments(t) {
		above["misnamed "+dir] = n
	}
	for what, n := range above {
		if n > allowed[what] {
			t.Errorf("%s: %d, want at most %s", what, n, limitOf(what, allowed))
		}
	}
	if *update && !t.Failed() {
		writeLimits(t, above)
		return
	}
	for what, n := range allowed {
		if above[what] < n {
			t.Errorf("%s has fallen from %d to %d: lower it in testdata/limits.txt (make arch UPDATE=1)", what, n, above[what])
		}
	}
}

func limitOf(what string, allowed map[string]int) string {
	if n, ok := allowed[what]; ok {
		return fmt.Sprint(n, ", as listed in testdata/limits.txt")
	}
	kind, _, _ := strings.Cut(what, " ") // misnamed comments have the limit zero
	return fmt.Sprint(map[string]int{"cycle": maxCycle, "methods": maxMethods, "exports": maxExports}[kind])
}

var limitsFile = filepath.Join("testdata", "limits.txt")

func readLimits(t *testing.T) map[string]int {
	t.Helper()
	text := check.Must(os.ReadFile(limitsFile))(t)
	limits := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if line == "\n" {
			continue
		}
		var kind, of string
		var n int
		if _, err := fmt.Sscan(line, &kind, &of, &n); err != nil {
			t.Fatalf("%s: %q: %v", limitsFile, line, err)
		}
		limits[kind+" "+of] = n
	}
	return limits
}

// writeLimits separates the lines, so that two branches may each change one.
func writeLimits(t *testing.T, limits map[string]int) {
	t.Helper()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(limits)) {
		fmt.Fprintf(&b, "%s %d\n\n", what, limits[what])
	}
	check.Require(t, os.WriteFile(limitsFile, []byte(b.String()), 0o600))
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
