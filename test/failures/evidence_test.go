package failures_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// TestEvidence compares docs/evidence.md with the tests: each test that it names
// exists, each class of this package is on the page, and no cell is empty.
func TestEvidence(t *testing.T) {
	t.Parallel()
	page := readFile(t, "docs/evidence.md")
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		check.Equal(t, len(cells), 6, "cells, want 6: %s", line)
		for _, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("an empty cell: %s", line)
			}
		}
	}
	named := regexp.MustCompile("`([a-z./]+) ([A-Z][A-Za-z0-9]*)(/[A-Za-z]+)?`").FindAllStringSubmatch(page, -1)
	if len(named) < 50 {
		t.Errorf("the page names %d tests", len(named))
	}
	shown := make(map[string]bool)
	for _, m := range named {
		shown[m[2]] = true
		if !exists(t, m[1], m[2], strings.TrimPrefix(m[3], "/")) {
			t.Errorf("there is no %s", m[0])
		}
	}
	for _, c := range all[struct{}]() {
		if !shown[c.name] {
			t.Errorf("the class %s is not on the page", c.name)
		}
	}
}

// exists looks for a test, or a check of the suite, by its declaration.
func exists(t *testing.T, where, name, check string) bool {
	t.Helper()
	switch {
	case where == "store/storetest":
		text := readSources(t, "store/storetest", "*.go")
		return strings.Contains(text, `"`+name+`"`) && strings.Contains(text, `"`+check+`"`) || check == "" && strings.Contains(text, `"`+name+`"`)
	case where == "failures" && !strings.HasPrefix(name, "Test"):
		return strings.Contains(readSources(t, "test/failures", "classes_test.go"), `{"`+name+`", `)
	case where == "failures":
		where = "test/failures"
	}
	return strings.Contains(readSources(t, where, "*_test.go"), "func "+name+"(")
}

func readSources(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", dir, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	var all strings.Builder
	for _, name := range files {
		text := check.Must(os.ReadFile(name))(t)
		all.Write(text)
	}
	return all.String()
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join("..", "..", name)))(t)
	return string(text)
}
