package usage_test

import (
	"math"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/usage"
)

// TestForeignIsWhatNeitherClientNorServerUsed, as a share of all processors.
func TestForeignIsWhatNeitherClientNorServerUsed(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name                           string
		client, server, busy, capacity time.Duration
		want                           float64
		quiet                          bool
	}{
		{"nobody else", 2 * s, 1 * s, 3 * s, 4 * s, 0, true},
		{"an eighth is too much", 1 * s, 1 * s, 2500 * time.Millisecond, 4 * s, 0.125, false},
		{"a tenth is not", 1 * s, 1 * s, 2400 * time.Millisecond, 4 * s, 0.1, true},
		{"ticks that lag behind", 2 * s, 1 * s, 2900 * time.Millisecond, 4 * s, 0, true},
	} {
		got := usage.Between(c.client, c.server, c.busy, c.capacity)
		if math.Abs(got.Foreign-c.want) > 1e-9 || got.Quiet() != c.quiet {
			t.Errorf("%s: others used %v, quiet is %t; want %v, %t", c.name, got.Foreign, got.Quiet(), c.want, c.quiet)
		}
	}
}

// TestStolenTimeIsForeign: the line has what a hypervisor gave to others. Waiting
// for the disk is not work.
func TestStolenTimeIsForeign(t *testing.T) {
	t.Parallel()
	busy, capacity, err := usage.ParseMachine("cpu  100 10 20 500 50 3 7 60 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := 200 * usage.Tick; busy != want {
		t.Errorf("busy = %v, want %v", busy, want)
	}
	if want := 750 * usage.Tick; capacity != want {
		t.Errorf("capacity = %v, want %v", capacity, want)
	}
	for _, wrong := range []string{"", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu  1 2 3 4 5 6 7 x"} {
		if _, _, err := usage.ParseMachine(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// TestNameOfAProcessMayHoldAnything, brackets and blanks too.
func TestNameOfAProcessMayHoldAnything(t *testing.T) {
	t.Parallel()
	pid, p, err := usage.ParseProcess([]byte("42 (a) b (c) S 7 42 42 0 -1 4194304 9 9 9 9 150 50 30 20 20 0 1 0 99 1 1"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := usage.Seen(p), (usage.Process{Parent: 7, Threads: 1, Own: 200 * usage.Tick, Waited: 50 * usage.Tick}); pid != 42 || got != want {
		t.Errorf("process %d is %+v, want 42 and %+v", pid, got, want)
	}
	for _, wrong := range []string{"", "42 (a", "x (a) S 7", "42 (a) S 7 8"} {
		if _, _, err := usage.ParseProcess([]byte(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// spin makes a test binary that only uses a processor until it is killed.
const spin = "SEMEL_BENCH_SPIN"

func TestMain(m *testing.M) {
	if os.Getenv(spin) != "" {
		for n := 1; n > 0; n ^= 2 { // for ever
		}
	}
	os.Exit(m.Run())
}

// TestTreeCountsWhatDescendantsUse: a shell that has started one that works, and
// sleeps itself.
func TestTreeCountsWhatDescendantsUse(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-c", `trap 'kill $!; exit' TERM; "$0" & wait`, self)
	shell.Env = append(os.Environ(), spin+"=1")
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) } // which ends the other, too
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	tree := usage.Tree(shell.Process.Pid)
	for used := time.Duration(0); used < 100*time.Millisecond; {
		var err error
		if used, err = tree(); err != nil {
			t.Fatal(err)
		}
	}
	if err := shell.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = shell.Wait() // by a signal
	if _, err := tree(); err == nil {
		t.Error("a process that is not there has used something")
	}
}
