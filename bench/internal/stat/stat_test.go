package stat_test

import (
	"math"
	"testing"

	"github.com/semelgo/semel/bench/internal/stat"
)

func TestMedian(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all  []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		before := len(c.all)
		if got := stat.Median(c.all); got != c.want || len(c.all) != before {
			t.Errorf("Median(%v) = %v, want %v", c.all, got, c.want)
		}
	}
	if got := stat.Median(nil); !math.IsNaN(got) {
		t.Errorf("Median(nil) = %v, want no number", got)
	}
}

func TestMedianLeavesTheOrder(t *testing.T) {
	t.Parallel()
	all := []float64{3, 1, 2}
	if stat.Median(all); all[0] != 3 {
		t.Errorf("the values are now %v", all)
	}
}

// TestQuantile by the nearest rank: a value that was seen, and that at least that
// share does not exceed.
func TestQuantile(t *testing.T) {
	t.Parallel()
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for _, c := range []struct {
		q    float64
		want int
	}{{0, 1}, {0.5, 50}, {0.99, 99}, {0.991, 100}, {1, 100}} {
		if got := stat.Quantile(hundred, c.q); got != c.want {
			t.Errorf("Quantile(1…100, %v) = %d, want %d", c.q, got, c.want)
		}
	}
	if got := stat.Quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("Quantile of none = %d, want 0", got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	if least, most := stat.Spread([]float64{2, 1, 3}); least != 1 || most != 3 {
		t.Errorf("Spread = %v, %v, want 1, 3", least, most)
	}
}

func TestDeviation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		all  []float64
		want float64
	}{
		{[]float64{2}, 0},
		{[]float64{2, 2, 2}, 0},
		{[]float64{4, 2, 1}, 0.5},
	} {
		if got := stat.Deviation(c.all); got != c.want {
			t.Errorf("Deviation(%v) = %v, want %v", c.all, got, c.want)
		}
	}
}
