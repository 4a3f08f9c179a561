package realtest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// engine describes a server that tests can use: how it is started and where it may
// be.
type engine struct {
	name     string
	env      string   // names an existing server to use
	envDir   string   // names the directory of the program to use
	program  string   // looked for in the PATH, then in places
	wrapped  bool     // the program in the PATH starts the system's own server: search places first
	places   []string // patterns of directories
	packages string   // what to install on Debian
}

// engineLocation is where an engine was found; one of the two is set.
type engineLocation struct {
	url     string // of a running server
	program string // path of the program to run
}

// machine is the part of the machine that finding an engine needs.
type machine struct {
	getenv   func(string) string
	lookPath func(string) (string, error)
	glob     func(string) ([]string, error)
}

func thisMachine() machine {
	return machine{getenv: os.Getenv, lookPath: exec.LookPath, glob: filepath.Glob}
}

// find returns where e is, nil if it is not installed. Of several installed
// versions it returns the newest.
func (m machine) find(e engine) *engineLocation {
	if url := m.getenv(e.env); e.env != "" && url != "" {
		return &engineLocation{url: url}
	}
	if dir := m.getenv(e.envDir); e.envDir != "" && dir != "" {
		return &engineLocation{program: filepath.Join(dir, e.program)}
	}
	searches := []func(engine) string{m.inPath, m.inPlaces}
	if e.wrapped {
		slices.Reverse(searches)
	}
	for _, search := range searches {
		if program := search(e); program != "" {
			return &engineLocation{program: program}
		}
	}
	return nil
}

func (m machine) inPath(e engine) string {
	path, err := m.lookPath(e.program)
	if err != nil {
		return ""
	}
	return path
}

func (m machine) inPlaces(e engine) string {
	for _, pattern := range e.places {
		found, _ := m.glob(filepath.Join(pattern, e.program))
		if len(found) > 0 {
			return slices.MaxFunc(found, byVersion)
		}
	}
	return ""
}

// byVersion orders paths by the numbers in them, so that 9.6 comes before 15 and
// 3.9 before 3.10, and otherwise by their letters.
func byVersion(a, b string) int {
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
}

func numbers(path string) []int {
	notDigit := func(r rune) bool { return r < '0' || r > '9' }
	var all []int
	for _, digits := range strings.FieldsFunc(path, notDigit) {
		n, _ := strconv.Atoi(digits)
		all = append(all, n)
	}
	return all
}

// requires reports whether a test that needs the engine may not be skipped.
func (m machine) requires(name string) bool {
	if ci, err := strconv.ParseBool(m.getenv("CI")); err == nil && ci {
		return true
	}
	return slices.ContainsFunc(strings.Split(m.getenv("SEMEL_TEST_REQUIRE"), ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == name || s == "all"
	})
}

// need finds e, or skips the test, or fails it where e is required.
func (m machine) need(tb testing.TB, e engine) engineLocation {
	tb.Helper()
	if at := m.find(e); at != nil {
		tb.Attr("engine", e.name)
		return *at
	}
	m.missing(tb, e, "there is no "+e.program+" on this machine; on Debian: apt-get install "+e.packages)
	return engineLocation{}
}

// missing ends the test: by skipping it, or by failing it where e is required.
func (m machine) missing(tb testing.TB, e engine, reason string) {
	tb.Helper()
	if m.requires(e.name) {
		tb.Fatal(reason)
	}
	tb.Skip(reason)
}
