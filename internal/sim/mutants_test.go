//go:build !race

package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// edit replaces a text that must stand in a file, once.
type edit struct{ file, old, new string }

// TestEachMutantIsOfTheCode finds out in no time what would fail TestMutants in minutes: code
// that was changed, so that a mutant's edit has no place any more.
func TestEachMutantIsOfTheCode(t *testing.T) {
	for _, m := range mutants() {
		for _, e := range m.edits {
			text, err := os.ReadFile(filepath.Join("..", "..", e.file))
			if err != nil {
				t.Error(err)
			} else if !strings.Contains(string(text), e.old) {
				t.Errorf("%s: %s does not have the text that is to be replaced:\n%s", m.name, e.file, e.old)
			}
		}
	}
}

// mutant is a mistake, where it shows, and the invariant that must see it with
// all the others looking away.
type mutant struct {
	name, plan, watch string
	edits             []edit
}

// TestMutants plants each mistake in a copy of the code, explores that, and
// wants the invariant that the mutant names to be broken. Nothing of it is in
// the code that is shipped; when a text to replace is gone, the mutant has to
// follow.
func TestMutants(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	root := check.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out := exploreMutant(t, root, m)
			if !strings.Contains(out, "\n"+m.watch+" is broken: ") {
				t.Errorf("%s does not see it in %s:\n%s", m.watch, m.plan, out)
			}
		})
	}
}

// exploreMutant returns what the program explore prints about the code with the mutant's edits.
func exploreMutant(t *testing.T, root string, m mutant) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for i, e := range m.edits {
		file := filepath.Join(root, filepath.FromSlash(e.file))
		from := file
		if before, ok := replace[file]; ok {
			from = before
		}
		to := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		plant(t, from, to, e)
		replace[file] = to
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	check.Require(t, err)
	list := filepath.Join(dir, "overlay.json")
	check.Require(t, os.WriteFile(list, overlay, 0o600))
	program := filepath.Join(dir, "explore")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay="+list, "-buildvcs=false", "-ldflags=-s -w", "-o", program, "./internal/sim/cmd/explore")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the mutant: %v\n%s", err, out)
	}
	out, _ := exec.CommandContext(t.Context(), program, "-plan="+m.plan, "-watch="+m.watch).CombinedOutput() // it fails
	return string(out)
}

// plant writes a copy of a file with a text replaced that it contains once.
func plant(t *testing.T, from, to string, e edit) {
	t.Helper()
	text := check.Must(os.ReadFile(from))(t)
	if n := strings.Count(string(text), e.old); n != 1 {
		t.Fatalf("%s has the text to replace %d times, want once; the mutant has to follow the code:\n%s", e.file, n, e.old)
	}
	check.Require(t, os.WriteFile(to, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600))
}
