package realtest_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/internal/realtest"
)

// TestNoServerOutlivesItsTests: a test binary ends, or is killed, in whatever
// state its servers are. None is left, nor its files.
func TestNoServerOutlivesItsTests(t *testing.T) {
	t.Parallel()
	if kind := os.Getenv(orphanEnv); kind != "" {
		haveServers(t, kind)
		return
	}
	for _, kind := range []string{"ended", "killed", "paused"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			child, left := startChild(t, kind)
			if kind != "ended" {
				child.end(t)
			}
			child.wait(t)
			for _, addr := range left.Addrs {
				until(t, addr+" refuses", func() bool { return refuses(t, addr) })
			}
			for _, home := range left.Homes {
				until(t, home+" is gone", func() bool { return isGone(home) })
			}
			wantNobodyIn(t, left.Homes)
		})
	}
}

// TestKernelEndsServersWhereTheWatchdogCannot: it was killed, too. What it would
// have removed, the next to need a directory removes.
func TestKernelEndsServersWhereTheWatchdogCannot(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with its parent")
	}
	child, left := startChild(t, "killed")
	home := left.Homes[0]
	for _, pid := range children(t, child.cmd.Process.Pid) {
		if words := read(t, "/proc/"+pid+"/cmdline"); strings.Contains(words, "/bin/sh") && strings.Contains(words, home) {
			kill(t, pid)
		}
	}
	child.end(t)
	child.wait(t)
	until(t, left.Addrs[0]+" refuses", func() bool { return refuses(t, left.Addrs[0]) })
	until(t, "nobody works in "+home, func() bool { return len(workers(t, home)) == 0 })
	if isGone(home) {
		t.Fatal("the directory is gone; the watchdog lived")
	}
	realtest.PgBouncer(t, realtest.Postgres(t).URL())
	if !isGone(home) {
		t.Error("the stale directory is still there")
	}
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

func wantNobodyIn(t *testing.T, homes []string) {
	t.Helper()
	for _, home := range homes {
		if pids := workers(t, home); len(pids) > 0 {
			t.Errorf("processes %v still work in %s", pids, home)
		}
	}
}

// workers are the processes that work in a directory that may be gone.
func workers(t *testing.T, home string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, home) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// children are the processes that pid has started.
func children(t *testing.T, pid int) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatalf("list children: %v", err)
	}
	return strings.Fields(string(out))
}

func kill(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// until polls until what is to be is, for a minute at most.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	bound := time.After(time.Minute)
	for !is() {
		select {
		case <-look.C:
		case <-bound:
			t.Fatalf("not true after a minute: %s", what)
		}
	}
}
