package doctest_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// published has the directories of the packages that the documents name.
var published = map[string]string{
	"semel": ".", "store": "store", "memory": "store/memory", "sqlite": "store/sqlite", "postgres": "store/postgres",
	"migrate": "migrate", "journal": "journal", "task": "task", "inbox": "inbox", "semelhttp": "semelhttp",
	"client": "semelhttp/client", "event": "event",
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

func exportsOfPublished(t *testing.T) map[string]exported {
	t.Helper()
	all := make(map[string]exported, len(published))
	for name, dir := range published {
		all[name] = exportsOf(t, filepath.Join(root(t), dir))
	}
	return all
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// exportsOf reads the package in dir.
func exportsOf(t *testing.T, dir string) exported {
	t.Helper()
	found := exported{}
	embeds := map[string][]string{}
	for _, file := range filesOf(t, dir) {
		found.aliases(t, file)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				found.add(receiver(d), d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					found.declared(s, embeds)
				}
			}
		}
	}
	for range 3 { // an embedded type may embed another
		for outer, inner := range embeds {
			for _, of := range inner {
				for id := range found {
					if m, is := strings.CutPrefix(id, of+"."); is {
						found[outer+"."+m] = true
					}
				}
			}
		}
	}
	return found
}

func (e exported) add(of, name string) {
	switch {
	case !ast.IsExported(name):
	case of != "":
		e[of+"."+name] = true
	default:
		e[name] = true
	}
}

func (e exported) declared(s ast.Spec, embeds map[string][]string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			e.add("", n.Name)
		}
	case *ast.TypeSpec:
		e.add("", s.Name.Name)
		var fields *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				e.add(s.Name.Name, n.Name)
			}
			if len(f.Names) == 0 {
				name := typeName(f.Type)
				e.add(s.Name.Name, name)
				embeds[s.Name.Name] = append(embeds[s.Name.Name], name)
			}
		}
	}
}

// aliases adds the members of the types of our packages that a file has aliases of.
func (e exported) aliases(t *testing.T, file *ast.File) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		alias, ok := n.(*ast.TypeSpec)
		if !ok || !alias.Assign.IsValid() {
			return true
		}
		of, ok := alias.Type.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		for _, i := range file.Imports {
			dir, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), "github.com/semelgo/semel/")
			if !ours || filepath.Base(dir) != of.X.(*ast.Ident).Name {
				continue
			}
			for id := range exportsOf(t, filepath.Join(root(t), dir)) {
				if m, is := strings.CutPrefix(id, of.Sel.Name+"."); is {
					e[alias.Name.Name+"."+m] = true
				}
			}
		}
		return true
	})
}

// receiver returns the name of the type of a method, and "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	return typeName(d.Recv.List[0].Type)
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}
