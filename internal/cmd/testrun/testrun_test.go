package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a module of its own in a temporary directory and goes there.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test\n\ngo 1.26.0\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// run runs the tests of the current directory and returns what was printed.
func run(t *testing.T, args ...string) (out string, failed bool) {
	t.Helper()
	o, err := parse(args, t.Output())
	if err != nil {
		t.Fatalf("parse(%q) = %v", args, err)
	}
	var buf bytes.Buffer
	failed, err = runAll(t.Context(), o, &buf)
	if err != nil {
		t.Fatalf("runAll(%q) = %v\n%s", args, err, &buf)
	}
	return buf.String(), failed
}

func mustEnd(t *testing.T, out string, lines ...string) {
	t.Helper()
	if want := strings.Join(lines, "\n") + "\n"; !strings.HasSuffix(out, want) {
		t.Errorf("output ends otherwise than\n%s\nit is:\n%s", want, out)
	}
}

func TestRun_CountsEachTestAndNamesEngines(t *testing.T) {
	write(t, map[string]string{"a/a_test.go": `package a
import "testing"
func TestGood(t *testing.T) { t.Attr("engine", "zebra"); t.Attr("states", "42") }
func TestParts(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Attr("engine", "ant") })
	t.Run("two", func(t *testing.T) { t.Skip("no two here") })
}
`})
	out, failed := run(t, "-race=false")
	if failed {
		t.Error("a run without failures counts as failed")
	}
	mustEnd(t, out, "engines: ant zebra", "3 passed, 0 failed, 1 skipped")
	for _, want := range []string{"TestGood: states 42", "skipped: example.test/a TestParts/two: a_test.go:6: no two here\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
}

func TestRun_FailuresAreShown(t *testing.T) {
	write(t, map[string]string{
		"bad/bad_test.go": `package bad
import "testing"
func TestBad(t *testing.T) { t.Error("this is why") }
func TestGood(t *testing.T) { t.Log("nobody needs this") }
`,
		"broken/broken_test.go": "package broken\nvar x int = \"text\"\n",
		"crash/crash_test.go": `package crash
import ("os"; "testing")
func TestCrash(t *testing.T) { os.Exit(3) }
`,
	})
	out, failed := run(t, "-race=false")
	if !failed {
		t.Error("a run with failures does not count as failed")
	}
	mustEnd(t, out, "engines: none", "1 passed, 3 failed, 0 skipped")
	for _, want := range []string{"this is why", "failed: example.test/bad TestBad", "failed: example.test/crash TestCrash", "broken_test.go:2"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "nobody needs this") {
		t.Errorf("output holds the log of a test that passed:\n%s", out)
	}
}

func TestRun_SecondPassWithoutRaceDetector(t *testing.T) {
	if !hasCompiler(t.Context()) {
		t.Skip("the race detector needs a C compiler")
	}
	write(t, map[string]string{
		"a/a_test.go":     "package a\nimport \"testing\"\nfunc TestBoth(t *testing.T) {}\n",
		"a/heavy_test.go": "//go:build !race\n\npackage a\nimport \"testing\"\nfunc TestHeavy(t *testing.T) { t.Attr(\"engine\", \"heavy\") }\n",
		"b/b_test.go":     "package b\nimport \"testing\"\nfunc TestSkippedUnderRace(t *testing.T) { if race { t.Skip(\"slow\") } }\n",
		"b/race.go":       "//go:build race\n\npackage b\nconst race = true\n",
		"b/norace.go":     "//go:build !race\n\npackage b\nconst race = false\n",
	})
	out, failed := run(t)
	if failed {
		t.Error("a run without failures counts as failed")
	}
	mustEnd(t, out, "engines: heavy", "3 passed, 0 failed, 0 skipped")
	if strings.Contains(out, "skipped: ") {
		t.Errorf("a test that ran in the second pass is listed as skipped:\n%s", out)
	}
}

// TestRun_NestedModules are run where nothing else is asked for.
func TestRun_NestedModules(t *testing.T) {
	write(t, map[string]string{
		"a/a_test.go":       "package a\nimport \"testing\"\nfunc TestA(t *testing.T) {}\n",
		"below/go.mod":      "module example.test/below\n\ngo 1.26.0\n",
		"below/b/b_test.go": "package b\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Fatal(\"seen\") }\n",
	})
	out, failed := run(t, "-race=false", "-nested", "below")
	if !failed || !strings.Contains(out, "seen") {
		t.Errorf("the failure below is not seen:\n%s", out)
	}
	mustEnd(t, out, "1 passed, 1 failed, 0 skipped")
	if out, failed = run(t, "-race=false", "-nested", "below", "./a"); failed {
		t.Errorf("more was run than was asked for:\n%s", out)
	}
}

func TestRun_WhatCannotStartIsNoSuccess(t *testing.T) {
	write(t, map[string]string{"a/a_test.go": "package a\n"})
	out, failed := run(t, "-race=false", "./nowhere")
	if !failed {
		t.Errorf("a package that does not exist counts as passed:\n%s", out)
	}
	if err := os.WriteFile("go.mod", []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := runAll(t.Context(), options{packages: []string{"./..."}}, &buf); err == nil {
		t.Errorf("runAll with a broken go.mod gives no error:\n%s", &buf)
	}
}
