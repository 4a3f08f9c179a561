package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// heavy is a package that builds otherwise without the race detector.
type heavy struct {
	path  string
	tests []string // those only this build has; none: all of the package's
}

// pattern is what go test's -run takes to run h's tests; empty: all.
func (h heavy) pattern() string {
	if len(h.tests) == 0 {
		return ""
	}
	return "^(" + strings.Join(h.tests, "|") + ")$"
}

// listed is what go list says of a package.
type listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

func (l listed) files() []string {
	return slices.Concat(l.GoFiles, l.TestGoFiles, l.XTestGoFiles)
}

// findHeavy compares what the packages consist of with and without race.
func findHeavy(ctx context.Context, packages []string) ([]heavy, error) {
	plain, err := list(ctx, packages)
	if err != nil {
		return nil, err
	}
	raced, err := list(ctx, append([]string{"-race"}, packages...))
	if err != nil {
		return nil, err
	}
	with := make(map[string][]string, len(raced))
	for _, l := range raced {
		with[l.ImportPath] = l.files()
	}
	var found []heavy
	for _, l := range plain {
		only := missing(l.files(), with[l.ImportPath])
		if len(only) == 0 || len(l.TestGoFiles)+len(l.XTestGoFiles) == 0 {
			continue
		}
		tests, err := testsIn(l.Dir, only)
		if err != nil {
			return nil, err
		}
		found = append(found, heavy{path: l.ImportPath, tests: tests})
	}
	return found, nil
}

// missing returns the names of all that others lacks.
func missing(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return slices.Contains(others, name)
	})
}

func list(ctx context.Context, args []string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go",
		append([]string{"list", "-e", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []listed
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read package list: %w", err)
		}
		all = append(all, l)
	}
}

// testsIn names the tests in files. A file without tests may change what every
// other test means, so then the answer is nil: all.
func testsIn(dir string, files []string) ([]string, error) {
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)\w*)\(`)
	var tests []string
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read tests: %w", err)
		}
		matches := declared.FindAllSubmatch(text, -1)
		if !strings.HasSuffix(name, "_test.go") || len(matches) == 0 {
			return nil, nil
		}
		for _, m := range matches {
			tests = append(tests, string(m[1]))
		}
	}
	return tests, nil
}
