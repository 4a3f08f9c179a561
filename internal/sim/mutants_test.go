package sim_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/sim"
)

var (
	mutantPlan  = flag.String("mutant-plan", "", "set by TestMutants: explore this plan only")
	mutantWatch = flag.String("mutant-watch", "", "set by TestMutants: watch this invariant only")
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
	if raced || testing.Short() {
		t.Skip("mutants are explored without the race detector")
	}
	if *mutantPlan != "" {
		t.Skip("this is a mutant")
	}
	root := check.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			out := exploreMutant(t, root, m)
			if !strings.Contains(out, caught(m.watch)) {
				t.Errorf("%s does not see it in %s:\n%s", m.watch, m.plan, out)
			}
		})
	}
}

func caught(invariant string) string { return "CAUGHT by " + invariant + "\n" }

// TestMutantChild explores in the process that TestMutants starts.
func TestMutantChild(t *testing.T) {
	if *mutantPlan == "" {
		t.Skip("started by TestMutants")
	}
	plans := sim.Gate()
	i := slices.IndexFunc(plans, func(p sim.Plan) bool { return p.Name == *mutantPlan })
	if i < 0 {
		t.Fatalf("there is no plan %q", *mutantPlan)
	}
	r := check.Must(sim.Explore(plans[i], sim.Options{Watch: []string{*mutantWatch}}))(t)
	if r.Violation == nil {
		t.Fatalf("SURVIVED %d runs, %d states", r.Runs, r.States)
	}
	fmt.Print(caught(r.Violation.Invariant))
	t.Log(r.Violation)
}

// exploreMutant runs TestMutantChild over the code with the mutant's edits.
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
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay="+list, "-v",
		"-run=^TestMutantChild$", "./internal/sim", "-args", "-mutant-plan="+m.plan, "-mutant-watch="+m.watch)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("the mutant's process: %v", err)
	}
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
