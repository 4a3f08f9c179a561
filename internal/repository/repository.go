// Package repository reads the files and the packages of this repository, for the tests of its
// documents and of its architecture.
package repository

import (
	"bytes"
	"go/importer"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Root returns the directory of go.mod, at or above the working directory.
func Root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil && filepath.Dir(dir) != dir {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatalf("no go.mod above the working directory: %v", err)
	return ""
}

// Read returns the text of a file, whose name is relative to Root.
func Read(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(Root(tb), name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Run returns the output of a command that runs in Root.
func Run(tb testing.TB, program string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), program, args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = Root(tb), &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// Files lists the files that match the patterns and that git would publish. It skips the test
// outside of a git work tree.
func Files(tb testing.TB, patterns ...string) []string {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(Root(tb), ".git")); err != nil {
		tb.Skipf("not a git work tree: %v", err)
	}
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	names := strings.Split(strings.TrimRight(Run(tb, "git", args...), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Stat(filepath.Join(Root(tb), name))
		return err != nil
	})
}

// Exports finds what the compiler has written about the packages of the module, and about those
// that they import.
func Exports(tb testing.TB) importer.Lookup {
	tb.Helper()
	files := make(map[string]string)
	for line := range strings.Lines(Run(tb, "go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...")) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[name] = file
	}
	return func(name string) (io.ReadCloser, error) { return os.Open(files[name]) }
}
