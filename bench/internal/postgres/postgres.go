package postgres

import (
	"fmt"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// Experiments on PostgreSQL.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		against{
			callers: 256,
			naive:   new(goal.AtLeast(doAgainst(256, "two plain statements"), "x", 4, 8)),
			bare:    new(goal.AtLeast(doAgainst(256, "one bare insert"), "x", 1.7, 2.5)),
			server:  new(goal.AtMost(cpuOf(256), "x", 1/5.5, 1/8.0)),
			p99:     new(goal.AtMost("Postgres, Do at 256 callers: p99 against two plain statements", "x", 0.4, 0.25)),
		}.experiment(),
		against{
			callers: 64,
			naive:   new(goal.AtLeast(doAgainst(64, "two plain statements"), "x", 2.5, 3.5)),
			server:  new(goal.AtMost(cpuOf(64), "x", 1/3.5, 1/5.0)),
		}.experiment(),
		against{callers: 8, naive: new(goal.AtLeast(doAgainst(8, "two plain statements"), "x", 0.95, 1.2))}.experiment(),
		against{callers: 1, naive: new(goal.AtLeast(doAgainst(1, "two plain statements"), "x", 0.95, 1.0))}.experiment(),
	}
}

func doAgainst(callers int, whom string) string {
	return fmt.Sprintf("Postgres, Do at %d callers: throughput against %s", callers, whom)
}

func cpuOf(callers int) string {
	return fmt.Sprintf("Postgres, Do at %d callers: server CPU per operation against two plain statements", callers)
}
