// Package rivals measures Semel against other libraries that do the same work, or
// the nearest to it that they do. What differs is said with what was found.
package rivals

import (
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// callers is how many ask at the same time.
const callers = 64

// Experiments against other libraries.
func Experiments() []lab.Experiment {
	return []lab.Experiment{
		{
			Name: "River: jobs",
			Rows: []goal.Row{
				goal.AtLeast(riverRow, "x", 6, 10),
				goal.Shown(riverManyRow, "x"),
			},
			Run: againstRiver,
		},
		{
			Name: "asynq: jobs",
			Rows: []goal.Row{goal.AtLeast(asynqRow, "x", 4, 8), goal.Shown(asynqLazyRow, "x")},
			Run:  againstAsynq,
		},
		{
			Name: "DBOS: workflows",
			Rows: []goal.Row{goal.AtLeast(dbosRow, "x", 6, 8)},
			Run:  againstDBOS,
		},
		{
			Name: "gofiber: requests",
			Rows: []goal.Row{
				goal.Shown(fiberFirst, "µs"), goal.Shown(fiberFirstAllocs, "allocations"),
				goal.Shown(fiberReplay, "µs"), goal.Shown(fiberReplayAllocs, "allocations"),
			},
			Run: againstFiber(), Spread: true,
		},
	}
}
