package doctest_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/repository"
)

var (
	// ruleHeading finds the heading of a rule on the protocol page.
	ruleHeading = regexp.MustCompile(`(?m)^### Rule (\d+): .+$`)
	// ruleTest finds the number of a rule in the name of a test.
	ruleTest = regexp.MustCompile(`^TestRule(\d\d)[A-Z]`)
)

// TestProtocolRulesAndTests: each rule of docs/protocol.md names at least one test of this
// rule, and each test that carries the number of a rule has its rule on the page.
// TestNamedTestsExist checks that the named tests exist.
func TestProtocolRulesAndTests(t *testing.T) {
	page := repository.Read(t, filepath.Join("docs", "protocol.md"))
	rules := map[string]bool{} // by number, with two digits
	headings := ruleHeading.FindAllStringSubmatchIndex(page, -1)
	for i, h := range headings {
		number := page[h[2]:h[3]]
		if len(number) == 1 {
			number = "0" + number
		}
		if rules[number] {
			t.Errorf("docs/protocol.md has two rules %s", number)
		}
		rules[number] = true
		end := len(page)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		_, tests, found := strings.Cut(page[h[1]:end], "\nTests: ")
		tests, _, _ = strings.Cut(tests, "\n\n")
		if !found || !strings.Contains(tests, "TestRule"+number) {
			t.Errorf("docs/protocol.md: rule %s has no line \"Tests: \" that names a test TestRule%s…", number, number)
		}
	}
	if len(rules) < 18 {
		t.Errorf("docs/protocol.md has %d rules, want at least 18", len(rules))
	}
	for pkg, tests := range testsByPackage(t) {
		for _, name := range tests {
			if m := ruleTest.FindStringSubmatch(name); m != nil && !rules[m[1]] {
				t.Errorf("%s %s: docs/protocol.md has no rule %s", pkg, name, m[1])
			}
		}
	}
}
