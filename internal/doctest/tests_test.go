package doctest_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/repository"
)

var (
	// aTest finds a test in backticks, with or without its package.
	aTest = regexp.MustCompile("`(?:([a-z][\\w/]*) )?((?:Test|Fuzz|Benchmark|Example)[A-Z]\\w*)(/[^`]*)?`")
	// declaredTest finds the declaration of a test.
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)[A-Z]\w*)\(`)
)

// TestNamedTestsExist: the tests that documents name exist, in the named package.
func TestNamedTestsExist(t *testing.T) {
	inPackage := testsByPackage(t)
	found := 0
	for _, name := range repository.Files(t, "*.md") {
		if name == "CHANGELOG.md" {
			continue // it names what was renamed and removed
		}
		for _, m := range aTest.FindAllStringSubmatch(prose(repository.Read(t, name)), -1) {
			found++
			there := false
			for pkg, tests := range inPackage {
				there = there || (m[1] == "" || strings.HasSuffix("/"+pkg, "/"+m[1])) && slices.Contains(tests, m[2])
			}
			if !there {
				t.Errorf("%s names the test %s, which does not exist", name, strings.Trim(m[0], "`"))
			}
		}
	}
	if found < 100 {
		t.Errorf("found only %d tests; this test looks in the wrong place", found)
	}
}

// testsByPackage lists the tests of each directory, including nested modules.
func testsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, name := range repository.Files(t, "*_test.go") {
		pkg := filepath.ToSlash(filepath.Dir(name))
		for _, m := range declaredTest.FindAllStringSubmatch(repository.Read(t, name), -1) {
			found[pkg] = append(found[pkg], m[1])
		}
	}
	return found
}
