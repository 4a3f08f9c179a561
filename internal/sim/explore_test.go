//go:build !race

// The race detector makes coroutines ten times slower, and finds nothing in them: they never
// run at once. So plans and mutants are explored without it.

package sim_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/semelgo/semel/internal/check"
	"github.com/semelgo/semel/internal/sim"
)

var (
	update = flag.Bool("update", false, "write the numbers of states that were found to testdata/states.txt")
	replay = flag.String("replay", "", "tell the run that a failing exploration gave as its replay line")
)

// TestMain leaves the collector more room: worlds are small and short-lived. It drops the alarms
// of their engines.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	debug.SetGCPercent(1600)
	os.Exit(m.Run())
}

// TestExplore runs every interleaving of every mode, with every fault its
// budget allows, and holds the invariants after each step. The numbers of
// states are a golden file: a protocol that lost or won behaviour shows there.
func TestExplore(t *testing.T) {
	var mu sync.Mutex
	found := map[string]string{}
	t.Run("plans", func(t *testing.T) {
		for _, p := range sim.Gate() {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && !strings.HasPrefix(p.Mode, "inline") && !strings.HasPrefix(p.Mode, "hold") {
					t.Skip("make test-full runs it")
				}
				r := explore(t, p)
				mu.Lock()
				defer mu.Unlock()
				found[p.Name] = fmt.Sprintf("%d states, %d runs", r.States, r.Runs)
			})
		}
	})
	if !t.Failed() && !testing.Short() {
		golden(t, found)
	}
}

func explore(t *testing.T, p sim.Plan) sim.Report {
	t.Helper()
	r, err := sim.Explore(p, sim.Options{})
	check.Require(t, err, "Explore(%s)", p.Name)
	t.Attr("states", strconv.Itoa(r.States))
	t.Logf("%s: %d states, %d runs, %d steps: %v", p.Name, r.States, r.Runs, r.Steps, &r.Marks)
	if r.Violation != nil {
		t.Fatalf("%v", r.Violation)
	}
	if missing := r.Marks.Missing(p.Require); missing != nil {
		t.Errorf("%s proves nothing about %v: none of its runs came to it", p.Name, missing)
	}
	return r
}

// golden compares the numbers found with those that are written down.
func golden(t *testing.T, found map[string]string) {
	t.Helper()
	file := filepath.Join("testdata", "states.txt")
	if *update {
		var b strings.Builder
		for _, p := range sim.Gate() {
			fmt.Fprintf(&b, "%s: %s\n", p.Name, found[p.Name])
		}
		check.Require(t, os.WriteFile(file, []byte(b.String()), 0o600))
	}
	text := check.Must(os.ReadFile(file))(t)
	known := 0
	for line := range strings.Lines(string(text)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), ": ")
		known++
		if got, ok := found[name]; ok && got != want {
			t.Errorf("%s: got %s, want %s; if the protocol was meant to change, run with -update", name, got, want)
		}
	}
	if known != len(sim.Gate()) {
		t.Errorf("%s has %d plans, there are %d; run with -update", file, known, len(sim.Gate()))
	}
}

// TestEveryMarkMustBeSeen: there is no rare event that could silently stop
// happening.
func TestEveryMarkMustBeSeen(t *testing.T) {
	t.Parallel()
	require := map[sim.Mark]bool{}
	for _, p := range sim.Gate() {
		for _, m := range p.Require {
			require[m] = true
		}
	}
	for _, m := range sim.AllMarks() {
		if !require[m] {
			t.Errorf("no plan has to come to %q", m)
		}
	}
}

// TestReplay tells the run that -replay names.
func TestReplay(t *testing.T) {
	if *replay == "" {
		t.Skip("give it a line with -replay")
	}
	lines, v, err := sim.Replay(*replay, append(sim.Gate(), sim.Deep()...))
	check.Require(t, err, "Replay(%q)", *replay)
	t.Log("\n" + strings.Join(lines, "\n"))
	if v != nil {
		t.Errorf("%s is broken: %s", v.Invariant, v.Text)
	}
}
