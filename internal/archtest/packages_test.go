//go:build !race

package archtest_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/repository"
)

const module = "github.com/semelgo/semel"

var update = flag.Bool("update", false, "rewrite the golden import graph")

// pkg is a package of this module, in the format of go list.
type pkg struct {
	ImportPath string
	Name       string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// short returns the package's path relative to the module; the root is "semel".
func (p pkg) short() string { return short(p.ImportPath) }

func short(path string) string {
	if path == module {
		return "semel"
	}
	return strings.TrimPrefix(path, module+"/")
}

// ours reports whether path is a package of this module.
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// std reports whether path belongs to the standard library: its first element
// has no dot.
func std(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// loaded is a value that the first test loads for all tests. If that test fails, the
// others get an empty value.
type loaded[T any] struct {
	once  sync.Once
	value T
}

func (l *loaded[T]) get(load func() T) T {
	l.once.Do(func() { l.value = load() })
	return l.value
}

var (
	allPackages loaded[[]pkg]
	allFiles    loaded[[]goFile]
	allTypes    loaded[[]typedPackage]
)

// packages lists the packages of the module that have more than tests.
func packages(t *testing.T) []pkg {
	t.Helper()
	return allPackages.get(func() []pkg {
		out := repository.Run(t, "go", "list", "-e", "-json=ImportPath,Name,Dir,GoFiles,Imports", "./...")
		var all []pkg
		for in := json.NewDecoder(strings.NewReader(out)); ; {
			var p pkg
			if err := in.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if len(p.GoFiles) > 0 {
				all = append(all, p)
			}
		}
		if len(all) < 2 {
			t.Fatalf("go list found %d packages", len(all))
		}
		return all
	})
}
