package realtest_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/realtest"
)

// TestServersEndWithTheirTests: a test binary ends or is killed while its servers
// are in any state. No server and no file is left.
func TestServersEndWithTheirTests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	if kind := os.Getenv(orphanEnv); kind != "" {
		runServers(t, kind)
		return
	}
	for _, kind := range []string{"ended", "killed", "paused", "broker", "mariadb"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			child, left := startChild(t, kind, os.TempDir())
			if kind != "ended" {
				child.end(t)
			}
			child.wait(t)
			for _, addr := range left.Addrs {
				realtest.Poll(t, addr+" refuses", func() bool { return refuses(t, addr) })
			}
			for _, serverDir := range left.Homes {
				realtest.Poll(t, serverDir+" is gone", func() bool { return isGone(serverDir) })
				realtest.Poll(t, "no worker for "+serverDir, func() bool { return len(workers(t, serverDir)) == 0 })
			}
		})
	}
}

// TestKernelEndsServersWhereTheWatchdogCannot: it was killed, too. What it would
// have removed, the next to need a directory removes.
func TestKernelEndsServersWhereTheWatchdogCannot(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make test-full runs it")
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	dir := openDir(t)
	child, left := startChild(t, "killed", dir)
	serverDir := left.Homes[0]
	for _, pid := range watchdogs(t, child.cmd.Process.Pid) {
		check.Require(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	child.end(t)
	child.wait(t)
	realtest.Poll(t, left.Addrs[0]+" refuses", func() bool { return refuses(t, left.Addrs[0]) })
	realtest.Poll(t, "no worker for "+serverDir, func() bool { return len(workers(t, serverDir)) == 0 })
	if isGone(serverDir) {
		t.Fatal("the directory is removed; the watchdog was alive")
	}
	next, _ := startChild(t, "ended", dir)
	next.wait(t)
	if !isGone(serverDir) {
		t.Error("the stale directory is still there")
	}
}

// openDir is a directory for this test that other users can reach into.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		check.Require(t, os.Chmod(d, 0o755))
	}
	return dir
}

func refuses(t *testing.T, addr string) bool {
	t.Helper()
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp", addr)
	if err == nil {
		conn.Close()
	}
	return err != nil
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

// workers are the processes that have the name of a home on their command line.
func workers(t *testing.T, serverDir string) []int {
	t.Helper()
	return processes(t, "/proc/[0-9]*/cmdline", filepath.Base(serverDir))
}

// watchdogs are the shells that pid has started.
func watchdogs(t *testing.T, pid int) []int {
	t.Helper()
	found := processes(t, "/proc/[0-9]*/stat", fmt.Sprintf(" (sh) S %d ", pid))
	if len(found) == 0 {
		t.Fatal("the child has no watchdog")
	}
	return found
}

// processes are those whose file of that name contains text.
func processes(t *testing.T, pattern, text string) []int {
	t.Helper()
	files := check.Must(filepath.Glob(pattern))(t)
	var pids []int
	for _, file := range files {
		said, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(said), text) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		check.Require(t, err)
		pids = append(pids, pid)
	}
	return pids
}
