//go:build !race

package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const maxFileLines = 350

// maxLinesToSplit is the limit of files that still have to be split.
const maxLinesToSplit = 600

// toSplit are these files, and the directories of packages that are being rebuilt.
var toSplit = []string{"store/postgres/"}

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
	for _, name := range tracked(t, "*.go") {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root(t), name), nil, parser.ParseComments)
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
		limit := maxFileLines
		if slices.ContainsFunc(toSplit, func(prefix string) bool { return strings.HasPrefix(f.name, prefix) }) {
			limit = maxLinesToSplit
		}
		if n := f.line(f.ast.FileEnd); n > limit {
			t.Errorf("%s has %d lines, want at most %d", f.name, n, limit)
		}
	}
}

// TestPackageComments: every package has a package comment, including programs.
func TestPackageComments(t *testing.T) {
	for _, p := range packages(t) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: the package comment is %q, want one that starts with %q", p.short(), p.Doc, want)
		}
	}
}

// TestExportedNamesAreDocumented in every package, including internal ones.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.name, "_test.go") || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s:%d: %s has no comment", f.name, f.line(name.Pos()), name.Name)
			}
		}
	}
}

// undocumented lists the exported names that d declares without a comment. One
// comment may document a whole group of constants or variables.
func undocumented(d ast.Decl) []*ast.Ident {
	var bare []*ast.Ident
	add := func(doc bool, names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() && !doc {
				bare = append(bare, n)
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || exportedReceiver(d.Recv) {
			add(d.Doc != nil, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(s.Doc != nil || d.Doc != nil && len(d.Specs) == 1, s.Name)
			case *ast.ValueSpec:
				add(s.Doc != nil || s.Comment != nil || d.Doc != nil, s.Names...)
			}
		}
	}
	return bare
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := false
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !exported {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

// TestNoTodoComments: open work belongs into a numbered issue.
func TestNoTodoComments(t *testing.T) {
	mark := regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	for _, f := range goFiles(t) {
		for _, group := range f.ast.Comments {
			if m := mark.FindString(group.Text()); m != "" {
				t.Errorf("%s:%d: %s in a comment", f.name, f.line(group.Pos()), m)
			}
		}
	}
}

// TestNoReplaceInGoMod: with a replaced module, users would build something
// else than the tests. A nested module is not published, and replaces the
// library by the root of the repository.
func TestNoReplaceInGoMod(t *testing.T) {
	for _, name := range tracked(t, "go.mod", "*/go.mod") {
		for _, r := range goMod(t, name).Replace {
			above := strings.Repeat("../", strings.Count(name, "/"))
			if nested := name != "go.mod"; nested && r.Old.Path == module && path.Clean(r.New.Path) == path.Clean(above) {
				continue
			}
			t.Errorf("%s replaces %s", name, r.Old.Path)
		}
	}
}
