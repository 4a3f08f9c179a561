// Package stat makes few numbers of many.
package stat

import (
	"math"
	"slices"
)

// Median is the middle of all; of an even number the mean of the two in the
// middle. Of none it is not a number.
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

// Spread is the least and the most of all.
func Spread(all []float64) (least, most float64) {
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(all), slices.Max(all)
}

// Deviation is how far all are from their median, on average and as a share of it.
func Deviation(all []float64) float64 {
	middle, sum := Median(all), 0.0
	for _, v := range all {
		sum += math.Abs(v - middle)
	}
	return sum / float64(len(all)) / middle
}

// Quantile is the least value that a share q of the sorted values do not exceed.
// Of none it is zero.
func Quantile[T any](sorted []T, q float64) T {
	if len(sorted) == 0 {
		var none T
		return none
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}
