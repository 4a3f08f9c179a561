// Package rivals measures Semel against other libraries that do the same or similar
// work. The findings' detail says what differs.
package rivals

import (
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/lab"
)

// callers is the number of concurrent callers.
const callers = 64

// Experiments returns the experiments with other libraries.
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
			Rows: []goal.Row{goal.AtLeast(asynqRow, "x", 4, 8), goal.AtLeast(asynqSameRow, "x", 4, 8), goal.Shown(asynqLazyRow, "x")},
			Run:  againstAsynq,
		},
		{
			Name: "gofiber on Redis",
			Rows: []goal.Row{goal.Shown(fiberRedisRow, "x"), goal.Shown(fiberRedisReplayRow, "x")},
			Run:  againstFiberOnRedis,
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
