//go:build unix

package command_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/errtype"
)

// program returns a command that runs this program in the test binary.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return longRunning(t, os.Args[0], args...)
}

// longRunning returns a command that does not end with the test's context; the
// test ends it.
func longRunning(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
}

// startServer starts a server that ends with the test, and returns the address
// in its output.
func startServer(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	check.Require(t, err)
	check.Require(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v: %s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address := regexp.MustCompile(`http://\S+`).FindString(line)
	if err != nil || address == "" {
		t.Fatalf("the server wrote %q: %v", line, err)
	}
	return address
}

// runToEnd runs cmd and returns its exit code and output.
func runToEnd(t *testing.T, cmd *exec.Cmd) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exited, ok := errtype.Find[*exec.ExitError](err); ok {
		return exited.ExitCode(), out.String(), errs.String()
	}
	check.Require(t, err)
	return 0, out.String(), errs.String()
}
