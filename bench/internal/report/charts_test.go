package report_test

import (
	"testing"

	"github.com/semelgo/semel/bench/internal/chart"
	"github.com/semelgo/semel/bench/internal/lab"
	"github.com/semelgo/semel/bench/internal/report"
)

// TestPointsBecomeLines: in the order in which the lines began, each from left to
// right, and a place that was measured twice is there once.
func TestPointsBecomeLines(t *testing.T) {
	t.Parallel()
	l, err := lab.New(t.Output(), true)
	if err != nil {
		t.Fatal(err)
	}
	l.Point("growth", "random", 1e4, 1)
	l.Point("growth", "random", 1e6, 0.9)
	l.Point("growth", "in order", 1e6, 1.1)
	l.Point("growth", "in order", 1e4, 1)
	l.Point("growth", "random", 1e4, 2)
	l.Point("nowhere", "random", 1, 1)
	drawn := report.Charts(l)
	if len(drawn) != 1 {
		t.Fatalf("%d charts, want that of the growth", len(drawn))
	}
	want := []chart.Series{
		{Name: "random", Points: []chart.Point{{X: 1e4, Y: 1}, {X: 1e6, Y: 0.9}}},
		{Name: "in order", Points: []chart.Point{{X: 1e4, Y: 1}, {X: 1e6, Y: 1.1}}},
	}
	for i, s := range drawn["growth.svg"].Series {
		if s.Name != want[i].Name || len(s.Points) != 2 || s.Points[0] != want[i].Points[0] || s.Points[1] != want[i].Points[1] {
			t.Errorf("line %d is %v, want %v", i, s, want[i])
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
