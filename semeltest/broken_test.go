package semeltest_test

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/semeltest"
	"github.com/semelgo/semel/store/memory"
)

// brokenEnv names, in a child process, the class of store to run the suite on.
const brokenEnv = "SEMELTEST_BROKEN"

// class is a way a store can be broken.
type class struct {
	name     string
	fails    string // the one check that it fails
	sabotage func(h *hooked)
}

// TestEveryBrokenStoreFailsItsCheck is the proof that the suite can fail: a
// store that is broken in one way fails the check that is named for it, and no
// other. The suite runs in a child process, where its failures are wanted.
func TestEveryBrokenStoreFailsItsCheck(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(brokenEnv); name != "" {
		runBroken(t, name)
		return
	}
	for _, c := range classes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passed, failed, text := runChild(t, c.name)
			if !slices.Equal(failed, []string{c.fails}) {
				t.Errorf("a store with %s fails %q, want only %q\n%s", c.name, failed, c.fails, text)
			}
			if len(passed) < 50 {
				t.Errorf("only %d checks passed besides, want the rest of the layer", len(passed))
			}
		})
	}
	t.Run("nothing broken", func(t *testing.T) {
		t.Parallel()
		passed, failed, text := runChild(t, "nothing")
		if len(failed) > 0 || len(passed) < 150 {
			t.Errorf("a store with nothing broken: %d checks pass, %q fail\n%s", len(passed), failed, text)
		}
		mustAllBeTried(t, passed)
	})
}

// mustAllBeTried requires a broken store for each single check of the parts that
// stand for the failures of other libraries.
func mustAllBeTried(t *testing.T, checks []string) {
	t.Helper()
	for _, check := range checks {
		part, _, _ := strings.Cut(check, "/")
		whole := slices.Contains([]string{
			"Keys", "Clock", "ClockTx", "Zombie", "ZombieTx", "Sweep", "PurgeTx", "BatchTx", "LeftBehind",
			"Queue", "QueueTx", "QueueRace", "AtomicBatch", "Gather",
		}, part)
		if whole && !slices.ContainsFunc(classes(), func(c class) bool { return c.fails == check }) {
			t.Errorf("no broken store fails %s", check)
		}
	}
}

func runBroken(t *testing.T, name string) {
	t.Helper()
	semeltest.Run(t, func(testing.TB) semeltest.Subject[*memory.Tx] {
		var now clock
		s := memory.New(memory.Options{Now: now.Now})
		h := &hooked{Store: s, quiet: runtime.NumGoroutine(), clock: now.Now}
		for _, c := range classes() {
			if c.name == name {
				c.sabotage(h)
			}
		}
		broken := subject(s, now.Advance)
		broken.Store, broken.Lose = h, h.lose
		broken.Batches = semeltest.BatchesOf(h, batchOf(broken.Effect))
		if h.gather != nil {
			broken.Store = &gathers{h, h.gather}
		}
		if h.effect != nil {
			broken.Effect = h.effect(broken.Effect)
		}
		return broken
	})
}

// runChild runs the suite on the class in a process of its own, and returns the
// checks that passed and failed there.
func runChild(t *testing.T, name string) (passed, failed []string, text string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatalf("find this test: %v", err)
	}
	child := exec.CommandContext(t.Context(), exe, "-test.run=^TestEveryBrokenStoreFailsItsCheck$", "-test.v", "-test.timeout=3m")
	child.Env = append(os.Environ(), brokenEnv+"="+name)
	out, err := child.CombinedOutput()
	text = string(out)
	passed, failed = leaves(text, "PASS"), leaves(text, "FAIL")
	text = regexp.MustCompile(`(?m)^ *(=== |--- (PASS|SKIP)).*\n`).ReplaceAllString(text, "")
	if (err != nil) != (len(failed) > 0) {
		t.Fatalf("the child ends with %v, and %d checks fail\n%s", err, len(failed), text)
	}
	return passed, failed, text
}

// leaves returns the checks with a result: part and check, without what their
// names are nested in.
func leaves(text, result string) []string {
	line := regexp.MustCompile(`(?m)^ +--- ` + result + `: [^/\s]+/([^/\s]+/[^/\s]+) `)
	var names []string
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// Every part of the suite whose failing can be shown by a store has a class.
func TestEveryPartHasABrokenStore(t *testing.T) {
	t.Parallel()
	tried := make(map[string]bool)
	for _, c := range classes() {
		part, _, _ := strings.Cut(c.fails, "/")
		tried[part] = true
	}
	for _, part := range []string{
		"Swap", "Heartbeat", "Fields", "Keys", "Batch", "Get", "Time", "Clock", "Scan", "Purge", "Zombie", "Sweep", "Gather", "Queue", "QueueTx", "QueueRace", "Audit", "Counts",
		"Atomic", "AtomicBatch", "Savepoint", "Hold", "SwapTx", "BatchTx", "ClockTx", "PurgeTx", "ZombieTx", "LeftBehind", "Edge", "EdgeTx", "Model", "Race", "RaceTx", "Lost", "Wire", "WireCall", "Outrun", "KthCall", "Storm",
	} {
		if !tried[part] {
			t.Errorf("no broken store fails a check of %s", part)
		}
	}
}
