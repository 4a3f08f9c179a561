package doctest_test

import (
	"cmp"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

// published has the directories of the packages that the documents name.
var published = map[string]string{
	"semel": ".", "store": "store", "memory": "store/memory", "sqlite": "store/sqlite", "postgres": "store/postgres", "mysql": "store/mysql",
	"migrate": "migrate", "journal": "journal", "task": "task", "inbox": "inbox", "onetime": "onetime", "semelhttp": "semelhttp",
	"client": "semelhttp/client", "event": "event", "admin": "admin", "adapter": "adapter", "guard": "guard",
	"semelwatermill": "semelwatermill", "storetest": "store/storetest", "pin": "semeltest/pin",
}

// exported has the names that a package exports: "Name", and "Type.Member" for fields and
// methods, including those of embedded types.
type exported map[string]bool

// qualified finds semel.Name and semel.Type.Member, in prose and in code.
var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(\.([A-Z]\w*))?`)

// TestIdentifiersExist: the identifiers of our packages that documents name with their
// package exist.
func TestIdentifiersExist(t *testing.T) {
	all := exportsOfPublished(t)
	count := 0
	for _, name := range documents(t) {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "bench/") {
			continue // the changelog names what was renamed and removed, bench is a module of its own
		}
		for _, m := range qualified.FindAllStringSubmatch(read(t, name), -1) {
			ids, ours := all[m[1]]
			if !ours {
				continue
			}
			count++
			if !ids[m[2]] || m[3] != "" && !ids[m[2]+m[3]] {
				t.Errorf("%s names %s, which does not exist", name, m[0])
			}
		}
	}
	if count < 200 {
		t.Errorf("found only %d identifiers; this test looks in the wrong place", count)
	}
}

// exportsOfPublished reads the packages as the compiler has written them.
func exportsOfPublished(t *testing.T) map[string]exported {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...")
	cmd.Dir = root(t)
	out, err := cmd.Output()
	check.Require(t, err, "go list")
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) { return os.Open(files[name]) })
	all := make(map[string]exported, len(published))
	for name, dir := range published {
		p := check.Must(compiled.Import(path.Join("github.com/semelgo/semel", dir)))(t)
		all[name] = exportsOf(p)
	}
	return all
}

func exportsOf(p *types.Package) exported {
	found := exported{}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		found.add(name, o)
		if _, isType := o.(*types.TypeName); !isType {
			continue
		}
		for _, methods := range []*types.MethodSet{types.NewMethodSet(o.Type()), types.NewMethodSet(types.NewPointer(o.Type()))} {
			for m := range methods.Methods() {
				found.add(name+"."+m.Obj().Name(), m.Obj())
			}
		}
		found.fields(name, o.Type())
	}
	return found
}

func (e exported) add(id string, o types.Object) {
	if o.Exported() {
		e[id] = true
	}
}

// fields adds the fields of a struct, including those of embedded ones.
func (e exported) fields(name string, of types.Type) {
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	s, ok := of.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for f := range s.Fields() {
		e.add(name+"."+f.Name(), f)
		if f.Embedded() {
			e.fields(name, f.Type())
		}
	}
}

// docLink finds [Name], [Type.Member] and [package.Name] in a comment. It ignores type
// arguments, and links with an address.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?((?:([a-z]\w*)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?))\](?:[^(:\[\w]|$)`)

// TestDocLinksHaveTargets: the names in brackets in comments exist, so go doc links them.
func TestDocLinksHaveTargets(t *testing.T) {
	all := exportsOfPublished(t)
	count := 0
	for pkg, dir := range published {
		for _, file := range filesOf(t, filepath.Join(root(t), dir)) {
			for _, group := range file.Comments {
				for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
					ids, ours := all[cmp.Or(m[2], pkg)]
					if !ours {
						continue
					}
					count++
					if !ids[m[3]] {
						t.Errorf("package %s: a comment links to [%s], which does not exist", pkg, m[1])
					}
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("found only %d links; this test looks in the wrong place", count)
	}
}

// filesOf parses the package in dir, without its tests.
func filesOf(t *testing.T, dir string) (files []*ast.File) {
	t.Helper()
	entries := check.Must(os.ReadDir(dir))(t)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file := check.Must(parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution|parser.ParseComments))(t)
		files = append(files, file)
	}
	return files
}
