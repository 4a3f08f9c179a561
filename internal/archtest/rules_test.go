package archtest_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

// TestRulesHaveTests: each rule of the protocol has a test with its number,
// TestRule01… to TestRule18…, in the root or below test.
func TestRulesHaveTests(t *testing.T) {
	const rules = 18
	var all strings.Builder
	for _, name := range tracked(t, "*_test.go") {
		if path.Dir(name) == "." || strings.HasPrefix(name, "test/") {
			all.WriteString(read(t, name))
		}
	}
	for n := 1; n <= rules; n++ {
		if name := fmt.Sprintf("\nfunc TestRule%02d", n); !strings.Contains(all.String(), name) {
			t.Errorf("rule %d has no test: no function TestRule%02d… in the root or below test", n, n)
		}
	}
}

// TestStoresReportTheirEngine: the tests of each store report the engine they
// ran on, so that the summary of `make test` can list the engines.
func TestStoresReportTheirEngine(t *testing.T) {
	for _, p := range packages(t) {
		unit, at, _ := unitOf(p.short())
		if at != stores || unit != p.short() {
			continue
		}
		want := fmt.Sprintf("t.Attr(%q, %q)", "engine", path.Base(unit))
		said := false
		for _, name := range tracked(t, unit+"/*_test.go") {
			said = said || strings.Contains(read(t, name), want)
		}
		if !said {
			t.Errorf("no test of %s says %s", unit, want)
		}
	}
}
