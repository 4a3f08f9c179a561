package main

import (
	"strings"
	"testing"

	"github.com/semelgo/semel/internal/check"
)

func TestExploreSaysWhatItFound(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	check.Require(t, run([]string{"-plan", "inline/faults", "-j", "1"}, &out), "run")
	if got := out.String(); !strings.HasPrefix(got, "inline/faults") || !strings.Contains(got, "unknown commit, then ok") {
		t.Errorf("run printed %q", got)
	}
}

func TestExplorePrintsARun(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	check.Require(t, run([]string{"-replay", "inline/faults:"}, &out), "run")
	if got := out.String(); !strings.Contains(got, `C1 receives ok: "x/s1/C1"`) {
		t.Errorf("run printed %q", got)
	}
}

func TestExploreRefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-plan", "nothing"}, {"-replay", "nothing:0"}, {"-replay", "inline/faults:?"}, {"-x"}} {
		check.Fails(t, run(args, new(strings.Builder)), "run(%q) found something to do", args)
	}
}
