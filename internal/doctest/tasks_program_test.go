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

	"github.com/semelgo/semel/internal/check"
)

// TestTasksProgram runs the complete program of docs/tasks.md as the page shows, and compares
// its output with the page.
func TestTasksProgram(t *testing.T) {
	const page = "docs/tasks.md"
	var binary, session string
	for _, b := range blocks(read(t, page)) {
		switch {
		case strings.Contains(b.text, "package main"):
			binary = build(t, b.text)
		case b.language == "console":
			session = b.text
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir, ran := t.TempDir(), 0
	for step := range strings.SplitSeq(session, "$ go run . ") {
		names, output, found := strings.Cut(step, "\n")
		if !found {
			continue
		}
		ran++
		want := slices.DeleteFunc(strings.Split(output, "\n"), func(line string) bool { return line == "" || line == "^C" })
		got := runUntilLines(t, exec.CommandContext(ctx, binary, strings.Fields(names)...), dir, len(want))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("with %q the program printed %q, and %s has %q", names, got, page, want)
		}
	}
	check.Equal(t, ran, 2, "%s runs the program", page)
}

// runUntilLines starts cmd in dir, reads that many lines, interrupts it, and reads the rest.
func runUntilLines(t *testing.T, cmd *exec.Cmd, dir string, lines int) (got []string) {
	t.Helper()
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	output := must(cmd.StdoutPipe())
	must(0, cmd.Start())
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		if got = append(got, scanner.Text()); len(got) == lines {
			must(0, cmd.Process.Signal(os.Interrupt))
		}
	}
	must(0, cmd.Wait())
	return got
}
