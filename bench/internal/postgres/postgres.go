package postgres

import (
	"fmt"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// Experiments returns the experiments on PostgreSQL.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		at256().experiment(), at64().experiment(), at8().experiment(), at1().experiment(),
		// For the charts.
		comparisonGroup{callers: 16, rounds: 3}.experiment(), comparisonGroup{callers: 128, rounds: 3}.experiment(),
		inline(), replay(), overSQL(), quorum(),
	}
}

func at256() comparisonGroup {
	return comparisonGroup{callers: 256, rows: []comparisonRow{
		faster("Do", "naive", 256, 4, 8),
		faster("Do", "bare", 256, 1.7, 2.5),
		faster("Swap", "naive", 256, 5, 10),
		faster("Swap", "bare", 256, 2, 3.5),
		cheaper(256, 1/5.5, 1/8.0),
		{
			goal.AtMost("Postgres, p99 of Do at 256 callers, against two plain statements", "x", 0.4, 0.25),
			"Do", "naive", contest.P99,
		},
		overKept(256),
	}}
}

func at64() comparisonGroup {
	return comparisonGroup{callers: 64, rows: []comparisonRow{faster("Do", "naive", 64, 2.5, 3.5), cheaper(64, 1/3.5, 1/5.0), overKept(64)}}
}

func at8() comparisonGroup {
	return comparisonGroup{callers: 8, rows: []comparisonRow{faster("Do", "naive", 8, 0.95, 1.3)}}
}

func at1() comparisonGroup {
	return comparisonGroup{callers: 1, rows: []comparisonRow{faster("Do", "naive", 1, 0.9, 1), overKept(1)}}
}

// faster is a row of throughput.
func faster(side, by string, callers int, must, aim float64) comparisonRow {
	whom := map[string]string{"naive": "two plain statements", "bare": "one bare insert"}[by]
	what := map[string]string{"Do": "Do", "Swap": "the store's Swap in a lane"}[side]
	name := fmt.Sprintf("Postgres, throughput of %s at %s, against %s", what, many(callers), whom)
	return comparisonRow{Row: goal.AtLeast(name, "x", must, aim), side: side, by: by}
}

// overKept is a row of throughput without a goal: against the plain table whose
// stuck and old rows can be found, as in Semel's table.
func overKept(callers int) comparisonRow {
	const whom = "two plain statements on a table that can be swept and purged"
	name := fmt.Sprintf("Postgres, throughput of Do at %s, against %s", many(callers), whom)
	return comparisonRow{Row: goal.Shown(name, "x"), side: "Do", by: "kept"}
}

func many(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", callers)
}

// cheaper is a row of the server's cost per operation.
func cheaper(callers int, must, aim float64) comparisonRow {
	name := fmt.Sprintf("Postgres, server CPU per operation of Do at %d callers, against two plain statements", callers)
	return comparisonRow{goal.AtMost(name, "x", must, aim), "Do", "naive", contest.ServerCPU}
}
