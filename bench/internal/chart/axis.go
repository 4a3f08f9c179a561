package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// axis maps values to pixels.
type axis struct {
	from, to   float64 // the values at its ends
	begin, end float64 // pixels
	log        bool
	ticks      []float64
}

func (a axis) at(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	return math.Round(10*(a.begin+(a.end-a.begin)*(v-from)/(to-from))) / 10
}

// axes chooses axes that contain all points.
func (c Chart) axes() (x, y axis) {
	var xs, ys []float64
	for _, s := range c.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x = axis{from: slices.Min(xs), to: slices.Max(xs), begin: left + 14, end: right - 14, log: true}
	slices.Sort(xs)
	x.ticks = slices.Compact(xs) // a tick at each measured value
	if x.from == x.to {
		x.from, x.to = x.from/2, x.to*2
	}
	if c.LogY {
		y = logarithmic(slices.Min(ys), slices.Max(ys))
	} else {
		y = linear(slices.Max(ys))
	}
	y.begin, y.end = bottom, top
	return x, y
}

// linear returns an axis that begins at zero and has about five ticks.
func linear(most float64) axis {
	if most <= 0 {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, times := range []float64{1, 2, 5, 10} {
		if most/(step*times) <= 6 {
			step *= times
			break
		}
	}
	a := axis{to: step * math.Ceil(most/step)}
	for i := 0; float64(i)*step <= a.to+step/2; i++ {
		a.ticks = append(a.ticks, float64(i)*step)
	}
	return a
}

// logarithmic returns an axis with ticks at 1, 2 and 5 of each power of ten.
func logarithmic(least, most float64) axis {
	a := axis{log: true}
	for power := math.Floor(math.Log10(least)); ; power++ {
		for _, times := range []float64{1, 2, 5} {
			v := times * math.Pow(10, power)
			switch {
			case v <= least:
				a.ticks = []float64{v}
			default:
				a.ticks = append(a.ticks, v)
			}
			if v >= most && len(a.ticks) > 1 {
				a.from, a.to = a.ticks[0], v
				return a
			}
		}
	}
}

// figure formats a number with as few digits as possible.
func figure(v float64) string {
	short := func(v float64, unit string) string {
		text := fmt.Sprintf("%.2f", v)
		if v >= 10 {
			text = fmt.Sprintf("%.1f", v)
		}
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + unit
	}
	switch {
	case v >= 999_500:
		return short(v/1e6, "M")
	case v >= 9_999.5:
		return short(v/1e3, "k")
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	default:
		return short(v, "")
	}
}
