package doctest_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

var (
	// place is a comment in a program of this package that names a page and the beginning of a
	// fragment on it, such as "// docs/tasks.md: added, err".
	place = regexp.MustCompile(`(?m)^[ \t]*// ([\w./-]+\.md): (.+)$`)
	// declared finds the variables that a fragment declares outside of its functions.
	declared = regexp.MustCompile(`(?m)^ *(\w+(?:, \w+)*) :=`)
)

// fragments returns the fragments of Go of README.md and docs, by page. Other tests run the
// complete programs, and the function serve of the quick start.
func fragments(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	for _, name := range repository.Files(t, "*.md") {
		if name != english && !strings.HasPrefix(name, "docs/") || strings.HasSuffix(name, chineseSuffix) {
			continue // TestTranslationsSayTheSame compares the code of both languages
		}
		for _, b := range blocks(repository.Read(t, name)) {
			if b.language == "go" && !strings.Contains(b.text, "package ") && !strings.HasPrefix(b.text, "func serve(") {
				found[name] = append(found[name], b.text)
			}
		}
	}
	return found
}

// TestFragmentsRun puts each fragment of a page into the programs in programs_*_test.go, at the
// comment that names it, and runs these programs. The compiler names the page and the line of a
// mistake.
func TestFragmentsRun(t *testing.T) {
	t.Parallel()
	pages, dir := fragments(t), filepath.Join(repository.Root(t), "internal", "doctest")
	used, overlay := make(map[string]bool), make(map[string]string)
	for _, file := range check.Must(filepath.Glob("programs_*_test.go"))(t) {
		source := repository.Read(t, filepath.Join("internal", "doctest", file))
		source = place.ReplaceAllStringFunc(source, func(comment string) string {
			m := place.FindStringSubmatch(comment)
			for _, text := range pages[m[1]] {
				if strings.HasPrefix(strings.TrimSpace(text), m[2]) {
					used[text] = true
					return fmt.Sprintf("//line %s:%d\n%s%s\n//line %s:%d", m[1], lineOf(repository.Read(t, m[1]), text), text, usesOf(text),
						file, lineOf(source, comment)+1)
				}
			}
			t.Errorf("%s: %s has no fragment that begins %q", file, m[1], m[2])
			return comment
		})
		overlay[filepath.Join(dir, file)] = filepath.Join(t.TempDir(), file)
		write(t, overlay[filepath.Join(dir, file)], []byte(source))
	}
	for page, all := range pages {
		for _, text := range all {
			if !used[text] {
				t.Errorf("no program here has this fragment of %s:\n%s", page, text)
			}
		}
	}
	replace := filepath.Join(t.TempDir(), "overlay.json")
	write(t, replace, check.Must(json.Marshal(map[string]any{"Replace": overlay}))(t))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-ldflags=-s -w", "-tags=fragments", "-overlay", replace, "-run=^Test(FragmentsOf|CreateOrder)", ".")
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Errorf("the programs with the fragments: %v\n%s", err, out)
	}
}

// lineOf returns the number of the line at which part begins.
func lineOf(text, part string) int {
	before, _, _ := strings.Cut(text, part)
	return strings.Count(before, "\n") + 1
}

// usesOf uses the variables of a fragment, because its page may not.
func usesOf(text string) string {
	var b strings.Builder
	for _, m := range declared.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			if name != "_" {
				fmt.Fprintf(&b, "_ = %s\n", name)
			}
		}
	}
	return b.String()
}
