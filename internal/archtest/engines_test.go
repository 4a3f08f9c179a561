//go:build !race

package archtest_test

import (
	"fmt"
	"path"
	"strings"
	"testing"
)

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
