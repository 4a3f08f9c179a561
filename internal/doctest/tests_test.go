package doctest_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
	for _, name := range documents(t) {
		if name == "CHANGELOG.md" {
			continue // it names what was renamed and removed
		}
		for _, m := range aTest.FindAllStringSubmatch(prose(read(t, name)), -1) {
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
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*_test.go")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git work tree: %v", err)
	}
	found := map[string][]string{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		pkg := filepath.ToSlash(filepath.Dir(name))
		for _, m := range declaredTest.FindAllStringSubmatch(read(t, name), -1) {
			found[pkg] = append(found[pkg], m[1])
		}
	}
	return found
}

// TestEachGuaranteeNamesATest: each part of docs/guarantees.md has a picture and names a test.
// Other tests check that the named tests and their files exist.
func TestEachGuaranteeNamesATest(t *testing.T) {
	parts := strings.Split(read(t, "docs/guarantees.md"), "\n## ")[1:]
	if len(parts) < 8 {
		t.Errorf("the page has %d parts", len(parts))
	}
	for _, part := range parts {
		title, _, _ := strings.Cut(part, "\n")
		if !aTest.MatchString(prose(part)) || !strings.Contains(part, "```mermaid") {
			t.Errorf("%q has no test or no picture", title)
		}
	}
}
