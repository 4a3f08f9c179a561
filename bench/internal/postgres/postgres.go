package postgres

import (
	"fmt"
	"strings"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// Experiments on PostgreSQL.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		at256().experiment(), at64().experiment(), at8().experiment(), at1().experiment(),
		// For the charts.
		against{callers: 16, rounds: 3}.experiment(), against{callers: 128, rounds: 3}.experiment(),
		inline(), replay(),
	}
}

func at256() against {
	return against{callers: 256, lane: true, rows: []versus{
		faster("Do", "naive", 256, 4, 8),
		faster("Do", "bare", 256, 1.7, 2.5),
		faster("Swap", "naive", 256, 5, 10),
		faster("Swap", "bare", 256, 2, 3.5),
		cheaper(256, 1/5.5, 1/8.0),
		{
			goal.AtMost("Postgres, p99 of Do at 256 callers, against two plain statements", "x", 0.4, 0.25),
			"Do", "naive", contest.P99,
		},
	}}
}

func at64() against {
	return against{callers: 64, rows: []versus{faster("Do", "naive", 64, 2.5, 3.5), cheaper(64, 1/3.5, 1/5.0)}}
}

func at8() against {
	return against{callers: 8, rows: []versus{faster("Do", "naive", 8, 0.95, 1.2)}}
}

func at1() against {
	return against{callers: 1, rows: []versus{faster("Do", "naive", 1, 0.95, 1)}}
}

// faster is a row of throughput.
func faster(side, by string, callers int, must, aim float64) versus {
	whom := map[string]string{"naive": "two plain statements", "bare": "one bare insert"}[by]
	what := map[string]string{"Do": "Do", "Swap": "the store's Swap in a lane"}[side]
	name := fmt.Sprintf("Postgres, throughput of %s at %d callers, against %s", what, callers, whom)
	if callers == 1 {
		name = strings.Replace(name, "1 callers", "1 caller", 1)
	}
	return versus{Row: goal.AtLeast(name, "x", must, aim), side: side, by: by}
}

// cheaper is a row of what an operation costs the server.
func cheaper(callers int, must, aim float64) versus {
	name := fmt.Sprintf("Postgres, server CPU per operation of Do at %d callers, against two plain statements", callers)
	return versus{goal.AtMost(name, "x", must, aim), "Do", "naive", contest.ServerCPU}
}
