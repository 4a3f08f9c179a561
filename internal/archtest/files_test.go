//go:build !race

package archtest_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

const maxFileLines = 350

// goFile is a parsed source file.
type goFile struct {
	name string // relative to the root
	set  *token.FileSet
	ast  *ast.File
}

// goFiles parses all files of the repository that are not generated.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	return allFiles.get(func() []goFile { return parseFiles(t) })
}

func parseFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, name := range repository.Files(t, "*.go") {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(repository.Root(t), name), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("parse %s: %v", name, err)
			continue
		}
		if !ast.IsGenerated(f) {
			files = append(files, goFile{name, set, f})
		}
	}
	return files
}

func (f goFile) line(pos token.Pos) int { return f.set.Position(pos).Line }

// TestFileSizes applies the same limit to code and tests. A longer file must be
// split.
func TestFileSizes(t *testing.T) {
	for _, f := range goFiles(t) {
		if n := f.line(f.ast.FileEnd); n > maxFileLines {
			t.Errorf("%s has %d lines, want at most %d", f.name, n, maxFileLines)
		}
	}
}

// TestNoReplaceInGoMod: go ignores the replacements of a dependency, so a user of the library
// would build something else than these tests. The nested modules are not published.
func TestNoReplaceInGoMod(t *testing.T) {
	var mod struct {
		Replace []struct{ Old struct{ Path string } }
	}
	check.Require(t, json.Unmarshal([]byte(repository.Run(t, "go", "mod", "edit", "-json")), &mod), "go.mod")
	for _, r := range mod.Replace {
		t.Errorf("go.mod replaces %s", r.Old.Path)
	}
}
