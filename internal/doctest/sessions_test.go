package doctest_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
	"github.com/semelgo/semel/internal/repository"
)

// TestProgramsPrintWhatThePagesShow runs complete programs with the commands of their pages, in
// the order of the page, and compares the outputs with the page.
func TestProgramsPrintWhatThePagesShow(t *testing.T) {
	t.Run("the quick start on SQLite", func(t *testing.T) {
		onSQLite, _, _ := strings.Cut(repository.Read(t, quickstart), "\n## 5. ")
		runSession(t, build(t, codeOn(t, quickstart, "package main")), onSQLite, 6)
	})
	t.Run("the quick start on PostgreSQL", func(t *testing.T) {
		t.Setenv("DATABASE_URL", durableDatabase(t))
		_, onPostgres, _ := strings.Cut(repository.Read(t, quickstart), "\n## 5. ")
		runSession(t, build(t, codeOn(t, quickstart, "pgxpool.New")), onPostgres, 4)
	})
	t.Run("tasks", func(t *testing.T) {
		runSession(t, build(t, codeOn(t, "docs/tasks.md", "package main")), repository.Read(t, "docs/tasks.md"), 2)
	})
	t.Run("messages", func(t *testing.T) {
		const page = "docs/messages.md"
		command := strings.ReplaceAll(codeOn(t, page, "printf '"), "go run .", build(t, codeOn(t, page, "package main")))
		check.Equal(t, run(t, t.TempDir(), command, 0), codeOn(t, page, "ship o-1: "), "the output")
	})
}

// runSession runs the lines "$ go run . …" in a part of a page. A program that the page
// interrupts with ^C may print its lines in any order.
func runSession(t *testing.T, binary, part string, wantCommands int) {
	t.Helper()
	dir, ran, crashed := t.TempDir(), 0, false
	for _, b := range blocks(part) {
		if b.language != "console" {
			continue
		}
		for step := range strings.SplitSeq(b.text, "$ ") {
			command, want, _ := strings.Cut(step, "\n")
			if !strings.Contains(command, "go run . ") {
				continue
			}
			ran++
			want, _, interrupted := strings.Cut(want, "^C\n")
			lines := 0
			if interrupted {
				lines = strings.Count(want, "\n")
			}
			var got string
			// After a crash the server needs a moment to notice that the connection is closed.
			realtest.Poll(t, "the transaction of the crashed program to end", func() bool {
				got = run(t, dir, strings.Replace(command, "go run .", binary, 1), lines)
				return !crashed || !strings.HasPrefix(got, "semel: in progress, retry after")
			})
			crashed = strings.HasPrefix(command, "CRASH=1 ")
			if interrupted {
				got, want = sortedLines(got), sortedLines(want)
			}
			if got != want {
				t.Errorf("%q printed %q, and the page has %q", command, got, want)
			}
		}
	}
	check.Equal(t, ran, wantCommands, "the page: lines that run the program")
}

func sortedLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// run returns the output of a command, as go run prints it. A program that does not end by
// itself is interrupted after a number of lines.
func run(t *testing.T, dir, command string, lines int) (output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	if lines > 0 {
		cmd = exec.CommandContext(ctx, "sh", "-c", "exec "+command)
	}
	out := must(cmd.StdoutPipe())
	cmd.Dir, cmd.Stderr = dir, cmd.Stdout
	check.Require(t, cmd.Start())
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		if output += scanner.Text() + "\n"; lines > 0 && strings.Count(output, "\n") == lines {
			check.Require(t, cmd.Process.Signal(os.Interrupt))
		}
	}
	if cmd.Wait() != nil {
		output += "exit status 1\n"
	}
	return output
}

// TestTestingFile: docs/testing.md shows the file of package shop as it is run.
func TestTestingFile(t *testing.T) {
	want := repository.Read(t, "internal/doctest/shop/shop_test.go")
	if diff := cmp.Diff(want, codeOn(t, "docs/testing.md", "\npackage ")); diff != "" {
		t.Errorf("docs/testing.md differs (-file +page):\n%s", diff)
	}
}
