//go:build !race

package archtest_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/repository"
)

// TestEngineLevels compares the levels of files in the comment of package engine with
// the code: a file uses only files of its own level and of the levels above it.
func TestEngineLevels(t *testing.T) {
	const dir = "internal/engine"
	levels, names := levelsIn(repository.Read(t, dir+"/doc.go"))
	if len(names) < 5 {
		t.Fatalf("doc.go lists %d levels; this test looks in the wrong place", len(names))
	}
	for _, p := range typedPackages(t) {
		if p.name != dir {
			continue
		}
		for _, file := range p.files {
			if name := fileName(p.file(file.Pos())); name != "doc" && levels[name] == 0 {
				t.Errorf("doc.go lists no level for %s", name)
			}
		}
		for from, all := range p.references() {
			for to, other := range all {
				above, below := levels[fileName(to)], levels[fileName(from)]
				if other && above > below && below > 0 {
					t.Errorf("%s, of level %q, uses %s of the lower level %q", fileName(from), names[below-1], fileName(to), names[above-1])
				}
			}
		}
	}
}

// levelsIn returns the level of each file, from 1, and the names of the levels.
func levelsIn(doc string) (levels map[string]int, names []string) {
	levels = make(map[string]int)
	item := regexp.MustCompile(`(?m)^//   - (\w+): ((?:.|\n//     )*)`)
	for _, m := range item.FindAllStringSubmatch(doc, -1) {
		names = append(names, m[1])
		for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune(" ,/\n", r) }) {
			levels[name] = len(names)
		}
	}
	return levels, names
}

func fileName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".go") }
