package storetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/ledger"
	"github.com/semelgo/semel/store/memory"
	"github.com/semelgo/semel/store/storetest"
)

// brokenEnv names, in a child process, the broken store to run the suite on.
const brokenEnv = "STORETEST_BROKEN"

// brokenStore is a store that is broken in one way.
type brokenStore struct {
	name        string
	failedCheck string // the one check that it fails
	breakStore  func(h *hooked)
}

// TestEveryBrokenStoreFailsItsCheck proves that the suite can fail: a store that is
// broken in one way fails the check that is named for it, and no other. The suite
// runs in a child process, where its failures are expected.
func TestEveryBrokenStoreFailsItsCheck(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(brokenEnv); name != "" {
		runBroken(t, name)
		return
	}
	for _, c := range brokenStores() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			passed, failed, text := runChild(t, c.name)
			if !slices.Equal(failed, []string{c.failedCheck}) {
				t.Errorf("a store with %s fails %q, want only %q\n%s", c.name, failed, c.failedCheck, text)
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
		mustCoverParts(t, passed)
	})
}

// mustCoverParts requires a broken store for each check of the parts that reproduce
// failures of other libraries.
func mustCoverParts(t *testing.T, checks []string) {
	t.Helper()
	for _, check := range checks {
		part, _, _ := strings.Cut(check, "/")
		whole := slices.Contains([]string{
			"Keys", "Clock", "ClockTx", "Zombie", "ZombieTx", "Sweep", "PurgeTx", "BatchTx", "LeakedGoroutine",
			"Queue", "QueueTx", "QueueRace", "AtomicBatch", "Join", "Again", "AgainTx",
		}, part)
		if whole && !slices.ContainsFunc(brokenStores(), func(c brokenStore) bool { return c.failedCheck == check }) {
			t.Errorf("no broken store fails %s", check)
		}
	}
}

func runBroken(t *testing.T, name string) {
	t.Helper()
	storetest.Run(t, func(testing.TB) storetest.Subject[*memory.Tx] {
		var now clock
		s := memory.New(memory.Options{Now: now.Now})
		h := &hooked{Store: s, race: newRace(), clock: now.Now}
		for _, c := range brokenStores() {
			if c.name == name {
				c.breakStore(h)
			}
		}
		broken := storetest.WithCallers(subject(s, now.Advance), h.race.add)
		broken.Store, broken.Lose, broken.Isolate = h, h.lose, h.Isolate
		broken.Batches = storetest.BatchesOf(h, ledger.MemoryBatch(broken.Effect))
		if h.begins || name == "nothing" {
			broken.Begin = beginMemory(s)
		}
		if h.join != nil {
			broken.Store = &joinableStore{h, h.join}
		}
		if h.effect != nil {
			broken.Effect = h.effect(broken.Effect)
		}
		return broken
	})
}

// runChild runs the suite on the broken store in a process of its own, and returns
// the checks that passed and failed there.
func runChild(t *testing.T, name string) (passed, failed []string, text string) {
	t.Helper()
	exe, err := os.Executable()
	check.Require(t, err, "find this test")
	child := exec.CommandContext(t.Context(), exe, "-test.run=^TestEveryBrokenStoreFailsItsCheck$", "-test.v", "-test.timeout=3m")
	child.Env = append(os.Environ(), brokenEnv+"="+name)
	out, err := child.CombinedOutput()
	text = string(out)
	passed, failed = checksWith(text, "PASS"), checksWith(text, "FAIL")
	text = regexp.MustCompile(`(?m)^ *(=== |--- (PASS|SKIP)).*\n`).ReplaceAllString(text, "")
	if (err != nil) != (len(failed) > 0) {
		t.Fatalf("the child ends with %v, and %d checks fail\n%s", err, len(failed), text)
	}
	return passed, failed, text
}

// checksWith returns the checks with a result, as part/check.
func checksWith(text, result string) []string {
	line := regexp.MustCompile(`(?m)^ +--- ` + result + `: [^/\s]+/([^/\s]+/[^/\s]+) `)
	var names []string
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// Every part of the suite that a store can fail has a broken store.
func TestEveryPartHasABrokenStore(t *testing.T) {
	t.Parallel()
	tried := make(map[string]bool)
	for _, c := range brokenStores() {
		part, _, _ := strings.Cut(c.failedCheck, "/")
		tried[part] = true
	}
	for _, part := range []string{
		"Swap", "Heartbeat", "Fields", "Keys", "Batch", "Get", "Time", "Clock", "Scan", "Purge", "Zombie", "Sweep", "Join", "Queue", "QueueTx", "QueueRace", "Audit", "Counts",
		"Atomic", "AtomicBatch", "Savepoint", "Lock", "SwapTx", "OwnTx", "BatchTx", "ClockTx", "PurgeTx", "ZombieTx", "LeakedGoroutine", "Transition", "TransitionTx", "Model", "ModelTx", "Race", "RaceTx", "LostReply", "Again", "AgainTx",
		"Wire", "WireTx", "WireCall", "WireCallTx", "LateLeader", "LateLeaderTx", "FailingCall", "FailingCallTx", "Storm", "StormTx",
	} {
		if !tried[part] {
			t.Errorf("no broken store fails a check of %s", part)
		}
	}
}
