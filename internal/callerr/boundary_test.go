package callerr_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// TestSealKnowsEveryErrorType: an error type of this package is either stopped
// by the seal on the errors of calls, or is one that such an error may be searched for.
func TestSealKnowsEveryErrorType(t *testing.T) {
	t.Parallel()
	searchable := []string{"callError", "functionError", "maskedError", "WaitError", "ReplayedError", "FieldError", "AttemptError"}
	source := check.Must(os.ReadFile("boundary.go"))(t)
	for name := range errorTypes(t) {
		if slices.Contains(searchable, name) {
			continue
		}
		if !strings.Contains(string(source), "**"+name) {
			t.Errorf("isConclusive does not name %s: an outer operation could draw conclusions from that of an inner one", name)
		}
	}
}

// errorTypes returns the types of this package that have an Error method.
func errorTypes(t *testing.T) map[string]bool {
	t.Helper()
	types := make(map[string]bool)
	entries := check.Must(os.ReadDir("."))(t)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := check.Must(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Error" {
				continue
			}
			star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			if of, ok := star.X.(*ast.Ident); ok {
				types[of.Name] = true
			}
		}
	}
	if len(types) < 10 {
		t.Fatalf("found %d error types, want more", len(types))
	}
	return types
}
