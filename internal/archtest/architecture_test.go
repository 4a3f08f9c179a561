//go:build !race

package archtest_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// architecturePage explains the architecture to newcomers.
const architecturePage = "docs/architecture.md"

// pictureGroup is a box of the picture of the packages: the units of some layers, and
// units of other layers.
type pictureGroup struct {
	id, title string
	layers    []layer
	units     []string
}

// pictureGroups returns the boxes, from the top of the picture. Programs and tests of
// the repository are not in it.
func pictureGroups() []pictureGroup {
	return []pictureGroup{
		{id: "edges", title: "edges", layers: []layer{edgeParts, edges}},
		{id: "patterns", title: "patterns", layers: []layer{patterns}},
		{id: "faces", title: "for edges and workers, for operators", layers: []layer{overCore}},
		{id: "root", title: "for callers", layers: []layer{core}},
		{id: "engine", title: "the engine", layers: []layer{engines}},
		{id: "values", title: "errors, encodings, events", layers: []layer{callErrors, codecs, events, journals}},
		{id: "rules", title: "the rules", layers: []layer{rules}},
		{id: "mechanisms", title: "mechanisms", layers: []layer{ground, mechanisms}},
		{id: "suite", title: "tests for users and authors of stores", layers: []layer{conformance}, units: []string{"semeltest", "semeltest/pin"}},
		{id: "operators", title: "for operators, in a browser", layers: []layer{views}, units: []string{"console"}},
		{id: "setup", title: "creates tables", layers: []layer{surfaces}},
		{id: "stores", title: "stores", layers: []layer{stores}},
		{id: "contract", title: "the contract of a store", layers: []layer{contract}},
	}
}

// onlyForTests reports whether only tests and programs use a unit.
func onlyForTests(unit string) bool {
	return slices.Contains([]string{"internal/check", "internal/metricsserver", "internal/realtest", "internal/repository", "internal/serve", "internal/sim", "internal/testchange"}, unit)
}

// groupOf returns the id of the box of a package, or "" if the picture leaves it out.
func groupOf(name string) (id, unit string) {
	unit, at, ok := unitOf(name)
	if !ok || onlyForTests(unit) {
		return "", unit
	}
	for _, g := range pictureGroups() {
		if slices.Contains(g.units, unit) {
			return g.id, unit
		}
		if slices.Contains(g.layers, at) {
			id = g.id
		}
	}
	return id, unit
}

// imports has, for each node, the nodes that it imports.
type imports map[string]map[string]bool

// reaches reports whether from imports to, directly or through others. The graph has
// no cycles.
func (g imports) reaches(from, to string) bool {
	for next := range g[from] {
		if next == to || g.reaches(next, to) {
			return true
		}
	}
	return false
}

// reduced returns the imports without those that others imply.
func (g imports) reduced() imports {
	kept := make(imports)
	for from, all := range g {
		kept[from] = make(map[string]bool)
		for to := range all {
			implied := false
			for other := range all {
				implied = implied || other != to && g.reaches(other, to)
			}
			if !implied {
				kept[from][to] = true
			}
		}
	}
	return kept
}

// TestReducedImports: an import that a longer path implies is left out.
func TestReducedImports(t *testing.T) {
	all := imports{"a": {"b": true, "c": true, "d": true}, "b": {"c": true}, "c": {"d": true}}
	want := imports{"a": {"b": true}, "b": {"c": true}, "c": {"d": true}}
	if diff := cmp.Diff(want, all.reduced()); diff != "" {
		t.Errorf("reduced imports differ (-want +got):\n%s", diff)
	}
}

// picture draws the boxes with their units, and an arrow for each import between boxes
// that no other path of arrows implies.
func picture(t *testing.T) string {
	t.Helper()
	units, graph := make(map[string]map[string]bool), make(imports)
	for _, p := range packages(t) {
		from, unit := groupOf(p.short())
		if from == "" {
			continue
		}
		if units[from] == nil {
			units[from], graph[from] = make(map[string]bool), make(map[string]bool)
		}
		units[from][unit] = true
		for _, path := range p.Imports {
			if !ours(path) {
				continue
			}
			if to, _ := groupOf(short(path)); to != "" && to != from {
				graph[from][to] = true
			}
		}
	}
	var boxes, arrows strings.Builder
	for _, g := range pictureGroups() {
		names := slices.Sorted(maps.Keys(units[g.id]))
		fmt.Fprintf(&boxes, "    %s[\"%s<br/>%s\"]\n", g.id, g.title, strings.Join(inRows(names), "<br/>"))
	}
	kept := graph.reduced()
	for _, g := range pictureGroups() {
		for _, to := range slices.Sorted(maps.Keys(kept[g.id])) {
			fmt.Fprintf(&arrows, "    %s --> %s\n", g.id, to)
		}
	}
	return "```mermaid\nflowchart TD\n" + boxes.String() + arrows.String() + "```\n"
}

// inRows joins names to rows of at most three, so that a box stays narrow.
func inRows(names []string) (rows []string) {
	for row := range slices.Chunk(names, 3) {
		rows = append(rows, strings.Join(row, ", "))
	}
	return rows
}

var pictureBlock = regexp.MustCompile("(?s)```mermaid\nflowchart TD\n.*?```\n")

// TestArchitecturePicture compares the picture of the packages with the imports.
// `make arch UPDATE=1` redraws it.
func TestArchitecturePicture(t *testing.T) {
	page, drawn := repository.Read(t, architecturePage), picture(t)
	if n := len(pictureBlock.FindAllString(page, -1)); n != 1 {
		t.Fatalf("%s has %d flowcharts, want 1", architecturePage, n)
	}
	if *update {
		page = pictureBlock.ReplaceAllLiteralString(page, drawn)
		check.Require(t, os.WriteFile(filepath.Join(repository.Root(t), architecturePage), []byte(page), 0o600))
	}
	if diff := cmp.Diff(pictureBlock.FindString(page), drawn); diff != "" {
		t.Errorf("the picture in %s differs from the imports; redraw it with make arch UPDATE=1 (-page +imports):\n%s", architecturePage, diff)
	}
}

var (
	sequenceBlock = regexp.MustCompile("(?s)```mermaid\nsequenceDiagram\n(.*?)```\n")
	stepLine      = regexp.MustCompile(`-?->>`)
	fileInStep    = regexp.MustCompile(`[\w./-]+\.go\b`)
	funcInStep    = regexp.MustCompile(`\b(\w+)\(\)`)
)

// TestSequenceDiagramsNameTheCode: each step of a sequence diagram names at least one
// file, the files exist, and they declare the functions of the step.
func TestSequenceDiagramsNameTheCode(t *testing.T) {
	blocks := sequenceBlock.FindAllStringSubmatch(repository.Read(t, architecturePage), -1)
	check.Equal(t, len(blocks), 3, "%s: sequence diagrams", architecturePage)
	for _, block := range blocks {
		for line := range strings.Lines(block[1]) {
			if !stepLine.MatchString(line) {
				continue
			}
			for _, problem := range problemsOfStep(t, line) {
				t.Errorf("%s: %s", strings.TrimSpace(line), problem)
			}
		}
	}
}

// problemsOfStep compares a step with the code.
func problemsOfStep(t *testing.T, step string) (problems []string) {
	t.Helper()
	var code strings.Builder
	files := fileInStep.FindAllString(step, -1)
	if len(files) == 0 {
		return []string{"the step names no file"}
	}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(repository.Root(t), name))
		if err != nil {
			problems = append(problems, err.Error())
		}
		code.Write(text)
	}
	for _, m := range funcInStep.FindAllStringSubmatch(step, -1) {
		if declared := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + m[1] + `[\[(]`); !declared.MatchString(code.String()) {
			problems = append(problems, m[1]+" is not declared in the files of the step")
		}
	}
	return problems
}

// TestProblemsOfStep: a step without a file, with a file that does not exist, or with
// a function of another file is a problem.
func TestProblemsOfStep(t *testing.T) {
	for step, want := range map[string]int{
		"A->>B: Swap()": 1,
		"A->>B: Next()<br/>internal/protocol/next.go":      0,
		"A->>B: Next()<br/>internal/protocol/classify.go":  1,
		"A->>B: asks the rules<br/>internal/protocol/x.go": 1,
	} {
		if got := problemsOfStep(t, step); len(got) != want {
			t.Errorf("problemsOfStep(%q) = %q, want %d", step, got, want)
		}
	}
}
