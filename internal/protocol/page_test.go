package protocol

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/store"
)

const updateVariable = "SEMEL_UPDATE"

// TestTransitionTableGolden compares docs/transitions.tsv with the table.
// SEMEL_UPDATE=1 rewrites the file.
func TestTransitionTableGolden(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("step\tfrom\tto\tby\tcondition\n")
	for _, r := range Transitions() {
		fmt.Fprintf(&b, "%s\t%v\t%v\t%s\t%s\n", r.Step, r.From, r.To, r.By, r.Condition)
	}
	golden(t, filepath.Join("..", "..", "docs", "transitions.tsv"), b.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv(updateVariable) != "" {
		check.Require(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.Require(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want := check.Must(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("%s is not what the code says; run the test with %s=1 and look at the difference\ngot:\n%s", path, updateVariable, got)
	}
}

// TestProtocolPage compares the diagram and the table in docs/protocol.md with
// Transitions. SEMEL_UPDATE=1 rewrites them.
func TestProtocolPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "protocol.md")
	page := check.Must(os.ReadFile(path))(t)
	const begin, end = "<!-- generated from Transitions: begin -->\n", "<!-- generated from Transitions: end -->\n"
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	golden(t, path, before+begin+drawing()+"\n"+table()+end+after)
}

// drawing draws the states, one arrow for all steps between two of them.
func drawing() string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	var arrows []string
	labels := map[string][]string{}
	for _, r := range Transitions() {
		arrow := fmt.Sprintf("%s --> %s", node(r.From), node(r.To))
		if !slices.Contains(arrows, arrow) {
			arrows = append(arrows, arrow)
		}
		if !slices.Contains(labels[arrow], r.Step) {
			labels[arrow] = append(labels[arrow], r.Step)
		}
	}
	for _, a := range arrows {
		fmt.Fprintf(&b, "    %s : %s\n", a, strings.Join(labels[a], ", "))
	}
	b.WriteString("```\n")
	return b.String()
}

func node(s store.State) string {
	if s == store.Absent {
		return "[*]"
	}
	return s.String()
}

func table() string {
	var b strings.Builder
	b.WriteString("| step | from | to | by | condition |\n|---|---|---|---|---|\n")
	for _, r := range Transitions() {
		fmt.Fprintf(&b, "| %s | %v | %v | %s | %s |\n", r.Step, r.From, r.To, r.By, r.Condition)
	}
	return b.String()
}
