//go:build !race

package archtest_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
	"unicode"

	"github.com/semelgo/semel/internal/check"
)

// misnamedComments counts, by directory, the comments that begin with another name than
// the one that they document.
func misnamedComments(t *testing.T) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			for name, comment := range documented(d) {
				if isMisnamed(name.Name, comment.Text()) {
					count[path.Dir(f.name)]++
					t.Logf("%s:%d: the comment of %s begins with another name", f.name, f.line(name.Pos()), name.Name)
				}
			}
		}
	}
	return count
}

// documented returns the names that d declares with a comment of their own.
func documented(d ast.Decl) map[*ast.Ident]*ast.CommentGroup {
	found := make(map[*ast.Ident]*ast.CommentGroup)
	switch d := d.(type) {
	case *ast.FuncDecl:
		found[d.Name] = d.Doc
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				found[s.Name] = docOf(d, s.Doc)
			case *ast.ValueSpec:
				if len(s.Names) == 1 {
					found[s.Names[0]] = docOf(d, s.Doc)
				}
			}
		}
	}
	return found
}

// docOf returns the comment of a spec, or of d if it declares nothing else.
func docOf(d *ast.GenDecl, doc *ast.CommentGroup) *ast.CommentGroup {
	if doc == nil && len(d.Specs) == 1 {
		return d.Doc
	}
	return doc
}

// isMisnamed reports whether a comment begins with a name, and not with this one. A first
// word in lower case is a name, because no sentence begins with it, and so is the name of
// a test.
func isMisnamed(name, comment string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(comment), " ")
	word = strings.TrimRight(word, ",:.\n")
	if word == "" || word == name {
		return false
	}
	rest, isTest := strings.CutPrefix(word, "Test")
	return unicode.IsLower(rune(word[0])) || isTest && rest != "" && unicode.IsUpper(rune(rest[0]))
}

func TestIsMisnamed(t *testing.T) {
	for comment, want := range map[string]bool{
		"run runs it.":            false,
		"Nothing is run.":         false,
		"":                        false,
		"Tests of the run.":       false,
		"goes runs it.":           true,
		"TestOther: it is run.":   true,
		"newRunner returns a run": true,
	} {
		check.Equal(t, isMisnamed("run", comment), want, "%q is misnamed", comment)
	}
}
