//go:build !race

package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

const module = "github.com/semelgo/semel"

var update = flag.Bool("update", false, "rewrite the golden import graph")

// pkg is a package of this module, in the format of go list.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
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

// goTool runs a go command in the root of the module.
func goTool(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// root returns the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir := check.Must(filepath.Abs(filepath.Join("..", "..")))(t)
	return dir
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
	return allPackages.get(func() []pkg { return listPackages(t) })
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	out := goTool(t, "list", "-e", "-json=ImportPath,Name,Doc,Dir,GoFiles,Imports", "./...")
	var all []pkg
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
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
}

// tracked lists the files that git tracks, relative to the root.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = root(t)
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("not a git work tree: %v", err)
	}
	names := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(root(t), name))
		return err != nil
	})
}

func read(t *testing.T, name string) string {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join(root(t), name)))(t)
	return string(text)
}
