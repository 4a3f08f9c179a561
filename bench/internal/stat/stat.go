// Package stat computes statistics.
package stat

import (
	"math"
	"slices"
)

// Median returns the median; of an even number of values the mean of the two in the
// middle. Of no values it is NaN.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Spread returns the least and the greatest value.
func Spread(all []float64) (least, most float64) {
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(all), slices.Max(all)
}

// Deviation returns the mean deviation from the median, as a share of it.
func Deviation(all []float64) float64 {
	middle, sum := Median(all), 0.0
	for _, v := range all {
		sum += math.Abs(v - middle)
	}
	return sum / float64(len(all)) / middle
}

// Quantile returns the least value that a share q of the sorted values does not
// exceed. Of no values it is zero.
func Quantile[T any](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}
