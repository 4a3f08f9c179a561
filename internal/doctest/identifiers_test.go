package doctest_test

import (
	"cmp"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/repository"
)

// published has the directories of the packages that the documents name.
var published = map[string]string{
	"semel": ".", "store": "store", "memory": "store/memory", "sqlite": "store/sqlite", "postgres": "store/postgres", "mysql": "store/mysql",
	"migrate": "migrate", "journal": "journal", "task": "task", "inbox": "inbox", "onetime": "onetime", "semelhttp": "semelhttp",
	"client": "semelhttp/client", "event": "event", "admin": "admin", "adapter": "adapter", "guard": "guard",
	"semelwatermill": "semelwatermill", "storetest": "store/storetest", "pin": "semeltest/pin",
}

// qualified finds semel.Name and semel.Type.Member, in prose and in code.
var qualified = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)(\.([A-Z]\w*))?`)

// TestIdentifiersExist: the identifiers of our packages that documents name with their
// package exist.
func TestIdentifiersExist(t *testing.T) {
	all := compiled(t)
	count := 0
	for _, name := range repository.Files(t, "*.md") {
		if name == "CHANGELOG.md" || strings.HasPrefix(name, "bench/") {
			continue // the changelog names what was renamed and removed, bench is a module of its own
		}
		for _, m := range qualified.FindAllStringSubmatch(repository.Read(t, name), -1) {
			p, ours := all[m[1]]
			if !ours {
				continue
			}
			count++
			if !exports(p, m[2]+m[3]) {
				t.Errorf("%s names %s, which does not exist", name, m[0])
			}
		}
	}
	if count < 200 {
		t.Errorf("found only %d identifiers; this test looks in the wrong place", count)
	}
}

// compiled returns published packages, and others of the module, as the compiler has written them.
func compiled(t *testing.T, others ...string) map[string]*types.Package {
	t.Helper()
	imports := importer.ForCompiler(token.NewFileSet(), "gc", repository.Exports(t))
	all := make(map[string]*types.Package)
	for name, dir := range published {
		all[name] = check.Must(imports.Import(path.Join("github.com/semelgo/semel", dir)))(t)
	}
	for _, dir := range others {
		all[dir] = check.Must(imports.Import(path.Join("github.com/semelgo/semel", dir)))(t)
	}
	return all
}

// exports reports whether a package exports a name, or a field or method: Type.Member.
func exports(p *types.Package, id string) bool {
	name, member, isMember := strings.Cut(id, ".")
	o := p.Scope().Lookup(name)
	if o == nil || !o.Exported() || !isMember {
		return o != nil && o.Exported()
	}
	found, _, _ := types.LookupFieldOrMethod(o.Type(), true, p, member)
	return found != nil
}

// docLink finds [Name], [Type.Member] and [package.Name] in a comment. It ignores type
// arguments, and links with an address.
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?((?:([a-z]\w*)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?))\](?:[^(:\[\w]|$)`)

// TestDocLinksHaveTargets: the names in brackets in comments exist, so go doc links them.
func TestDocLinksHaveTargets(t *testing.T) {
	all := compiled(t)
	count := 0
	for pkg, dir := range published {
		for _, file := range filesOf(t, filepath.Join(repository.Root(t), dir)) {
			for _, group := range file.Comments {
				for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
					p, ours := all[cmp.Or(m[2], pkg)]
					if !ours {
						continue
					}
					count++
					if !exports(p, m[3]) {
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
