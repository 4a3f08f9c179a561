package doctest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/protocol"
	"github.com/semelgo/semel/store"
)

// TestVocabularyKnowsEveryStateStepAndPolicy: what the code has a name for, the
// vocabulary explains.
func TestVocabularyKnowsEveryStateStepAndPolicy(t *testing.T) {
	text := read(t, filepath.Join("docs", "vocabulary.md"))
	for _, s := range append(store.States(), store.Absent) {
		mustHold(t, text, "\n| `"+s.String()+"` | ", "state")
	}
	for _, v := range []store.Verdict{store.Unknown, store.Committed, store.NotCommitted} {
		mustHold(t, text, "`"+v.String()+"`", "verdict")
	}
	_, steps, _ := strings.Cut(text, "\n## Steps")
	for _, row := range protocol.Transitions() {
		mustHold(t, steps, "| "+row.Step+" | ", "step")
	}
	policies := policyNames(t)
	for _, name := range policies {
		mustHold(t, text, "\n| `"+name+"` | ", "policy")
	}
	if len(policies) < 6 {
		t.Errorf("policy.go declares %q; this test looks in the wrong place", policies)
	}
}

func mustHold(t *testing.T, text, want, what string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("docs/vocabulary.md lacks the %s %q", what, want)
	}
}

// policyNames lists the functions of the root that return a Policy.
func policyNames(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), "policy.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || fn.Type.Results.NumFields() != 1 || !fn.Name.IsExported() {
			continue
		}
		if id, ok := fn.Type.Results.List[0].Type.(*ast.Ident); ok && id.Name == "Policy" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// TestVocabularySpeaksBothLanguages: each row of a table has Chinese in it.
func TestVocabularySpeaksBothLanguages(t *testing.T) {
	rows := 0
	for line := range strings.Lines(read(t, filepath.Join("docs", "vocabulary.md"))) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		rows++
		if !strings.ContainsFunc(line, isHan) {
			t.Errorf("docs/vocabulary.md: no Chinese in %q", strings.TrimSpace(line))
		}
	}
	if rows < 50 {
		t.Errorf("docs/vocabulary.md has %d rows; this test looks in the wrong place", rows)
	}
}

func isHan(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }
