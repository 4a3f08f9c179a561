//go:build !race

package archtest_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// typedPackage is a package of this module with its types.
type typedPackage struct {
	name  string // relative to the module
	set   *token.FileSet
	files []*ast.File
	types *types.Package
	uses  map[*ast.Ident]types.Object
}

// typedPackages checks the types of all packages, without their tests.
func typedPackages(t *testing.T) []typedPackage {
	t.Helper()
	return allTypes.get(func() []typedPackage { return checkTypes(t) })
}

func checkTypes(t *testing.T) []typedPackage {
	t.Helper()
	exports := repository.Exports(t)
	var all []typedPackage
	for _, p := range packages(t) {
		sources := make(map[string]any)
		for _, file := range p.GoFiles {
			sources[filepath.Join(p.Dir, file)] = nil
		}
		all = append(all, typeCheck(t, p.short(), sources, exports))
	}
	return all
}

// typeCheck checks the types of one package. A source that is nil is read from its file.
func typeCheck(t *testing.T, name string, sources map[string]any, imports importer.Lookup) typedPackage {
	t.Helper()
	p := typedPackage{name: name, set: token.NewFileSet(), uses: make(map[*ast.Ident]types.Object)}
	for file, source := range sources {
		f := check.Must(parser.ParseFile(p.set, file, source, parser.SkipObjectResolution))(t)
		p.files = append(p.files, f)
	}
	c := types.Config{Importer: importer.ForCompiler(p.set, "gc", imports)}
	var err error
	if p.types, err = c.Check(name, p.set, p.files, &types.Info{Uses: p.uses}); err != nil {
		t.Fatal(err)
	}
	return p
}

// references returns which files of a package use a name, a method or a field of which
// other files.
func (p typedPackage) references() map[string]map[string]bool {
	refers := make(map[string]map[string]bool)
	for use, object := range p.uses {
		if object.Pkg() != p.types || !declaredAtTop(object) {
			continue
		}
		from, to := p.file(use.Pos()), p.file(object.Pos())
		if refers[from] == nil {
			refers[from] = make(map[string]bool)
		}
		refers[from][to] = from != to
	}
	return refers
}

// largestCycle returns how many files of a package refer to each other in a circle: each
// uses a name, a method or a field of the next one.
func (p typedPackage) largestCycle() int {
	refers := p.references()
	reached := make(map[string]map[string]bool)
	for from := range refers {
		reached[from] = make(map[string]bool)
		reach(refers, from, reached[from])
	}
	largest := 0
	for from := range refers {
		n := 0
		for to := range reached[from] {
			if reached[to][from] {
				n++
			}
		}
		largest = max(largest, n)
	}
	return largest
}

// declaredAtTop reports whether an object is declared by a package-level declaration.
func declaredAtTop(object types.Object) bool {
	if object.Parent() == object.Pkg().Scope() {
		return true
	}
	switch o := object.(type) {
	case *types.Func:
		return o.Signature().Recv() != nil
	case *types.Var:
		return o.IsField()
	default:
		return false
	}
}

// reach adds to reached what from refers to, also indirectly.
func reach(refers map[string]map[string]bool, from string, reached map[string]bool) {
	for to, is := range refers[from] {
		if is && !reached[to] {
			reached[to] = true
			reach(refers, to, reached)
		}
	}
}

func (p typedPackage) file(pos token.Pos) string { return p.set.Position(pos).Filename }

// methods counts the methods of each type.
func (p typedPackage) methods() map[string]int {
	count := make(map[string]int)
	for _, name := range p.types.Scope().Names() {
		if named, ok := p.types.Scope().Lookup(name).Type().(*types.Named); ok {
			count[name] = named.NumMethods()
		}
	}
	return count
}

// exports counts the exported names of the package, without fields and methods.
func (p typedPackage) exports() int {
	n := 0
	for _, name := range p.types.Scope().Names() {
		if ast.IsExported(name) {
			n++
		}
	}
	return n
}
