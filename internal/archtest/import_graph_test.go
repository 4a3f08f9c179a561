//go:build !race

package archtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// TestImportGraph compares the imports of all packages with
// testdata/imports.txt, so that a new import is a deliberate decision. `make
// arch UPDATE=1` rewrites the file.
func TestImportGraph(t *testing.T) {
	got := importGraph(t)
	golden := filepath.Join("testdata", "imports.txt")
	if *update {
		check.Require(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want := check.Must(os.ReadFile(golden))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("imports differ from %s (-want +got); is the new import intended?\n%s", golden, diff)
	}
}

// importGraph writes a paragraph for each package: its name, then indented its
// imports from this module, then the other modules.
func importGraph(t *testing.T) string {
	t.Helper()
	modules := strings.Fields(repository.Run(t, "go", "list", "-m", "-f", "{{.Path}}", "all"))
	var b strings.Builder
	for _, p := range packages(t) {
		b.WriteString(p.short() + "\n")
		var mine, theirs []string
		for _, path := range p.Imports {
			switch {
			case ours(path):
				mine = append(mine, short(path))
			case !std(path):
				theirs = append(theirs, moduleOf(modules, path))
			}
		}
		for _, names := range [][]string{mine, theirs} {
			slices.Sort(names)
			for _, name := range slices.Compact(names) {
				b.WriteString("\t" + name + "\n")
			}
		}
	}
	return b.String()
}

// moduleOf returns the module of a package: the longest module path that is a
// prefix.
func moduleOf(modules []string, path string) string {
	best := ""
	for _, m := range modules {
		if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	if best == "" {
		return "of no module: " + path
	}
	return best
}
