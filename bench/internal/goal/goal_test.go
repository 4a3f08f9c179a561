package goal_test

import (
	"math"
	"testing"

	"github.com/semelgo/semel/bench/internal/goal"
)

func TestMetByTheMust(t *testing.T) {
	t.Parallel()
	least, most, shown := goal.AtLeast("a", "x", 4, 8), goal.AtMost("b", "µs", 4, 2), goal.Shown("c", "x")
	for _, c := range []struct {
		name        string
		result      goal.Result
		met, aimMet bool
		short       float64
	}{
		{"below the must", goal.Result{Row: least, Value: 3.9}, false, false, 1 - 3.9/8},
		{"at the must", goal.Result{Row: least, Value: 4}, true, false, 0.5},
		{"at the aim", goal.Result{Row: least, Value: 8}, true, true, 0},
		{"above the most", goal.Result{Row: most, Value: 4.1}, false, false, 4.1/2 - 1},
		{"at the most", goal.Result{Row: most, Value: 4}, true, false, 1},
		{"below the aim", goal.Result{Row: most, Value: 1}, true, true, 0},
		{"no aim", goal.Result{Row: least.NoAim(), Value: 4}, true, true, 0},
		{"no goal", goal.Result{Row: shown, Value: 0.1}, true, true, 0},
		{"no goal, not measured", goal.Result{Row: shown, Missing: true}, false, false, 0},
		{"at most, not measured", goal.Result{Row: most, Missing: true}, false, false, 0},
	} {
		r := c.result
		if r.Met() != c.met || r.AimMet() != c.aimMet || math.Abs(r.Short()-c.short) > 1e-9 {
			t.Errorf("%s: met %t, aim %t, %v short; want %t, %t, %v",
				c.name, r.Met(), r.AimMet(), r.Short(), c.met, c.aimMet, c.short)
		}
	}
}

// TestRowsWithoutFindingsSayWhy, and keep their place.
func TestRowsWithoutFindingsSayWhy(t *testing.T) {
	t.Parallel()
	rows := []goal.Row{goal.Shown("a", "x"), goal.Shown("b", "x")}
	got := goal.Results(rows, []goal.Finding{{Row: "b", Value: 2, Detail: "quiet"}}, "the server is down")
	if len(got) != 2 || !got[0].Missing || got[0].Detail != "not measured: the server is down" {
		t.Errorf("a row without a finding is %+v", got)
	}
	if got[1].Missing || got[1].Value != 2 || got[1].Detail != "quiet" {
		t.Errorf("a row with a finding is %+v", got[1])
	}
}
