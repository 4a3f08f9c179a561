package report

import (
	"cmp"
	"slices"

	"github.com/semelgo/semel/bench/internal/chart"
	"github.com/semelgo/semel/bench/internal/lab"
)

// Charts returns the charts that have points, by file name.
func Charts(l *lab.Lab) map[string]chart.Chart {
	drawn := make(map[string]chart.Chart)
	for name, c := range charts() {
		if c.Series = series(l.Points(name)); len(c.Series) > 0 {
			drawn[name+".svg"] = c
		}
	}
	return drawn
}

// charts returns all charts, without points.
func charts() map[string]chart.Chart {
	return map[string]chart.Chart{
		"throughput": {
			Title: "Throughput by callers", Subtitle: "PostgreSQL: keys claimed and completed with 256 bytes, a second; more is better",
			XLabel: "callers at the same time",
		},
		"cpu": {
			Title: "Processor time per operation", Subtitle: "PostgreSQL: microseconds of client and server together; less is better",
			XLabel: "callers at the same time", LogY: true,
		},
		"p99": {
			Title: "Latency that 1 of 100 operations exceeds", Subtitle: "PostgreSQL: milliseconds; less is better",
			XLabel: "callers at the same time", LogY: true,
		},
		"growth": {
			Title: "Throughput as the table grows", Subtitle: "PostgreSQL: against a table of ten thousand rows; level is good",
			XLabel: "rows in the table",
		},
	}
}

// series groups points into lines, in the order of each line's first point.
func series(points []lab.Point) []chart.Series {
	var all []chart.Series
	for _, p := range points {
		i := slices.IndexFunc(all, func(s chart.Series) bool { return s.Name == p.Series })
		if i < 0 {
			i, all = len(all), append(all, chart.Series{Name: p.Series})
		}
		all[i].Points = append(all[i].Points, chart.Point{X: p.X, Y: p.Y})
	}
	for i := range all {
		// Two experiments may have measured the same X; the first counts.
		slices.SortStableFunc(all[i].Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
		all[i].Points = slices.CompactFunc(all[i].Points, func(a, b chart.Point) bool { return a.X == b.X })
	}
	return all
}
