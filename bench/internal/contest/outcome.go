package contest

import (
	"fmt"
	"math"
	"strings"

	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/stat"
)

// Of returns the median over the rounds of a side's measure.
func (o *Outcome) Of(side string, m Measure) float64 {
	all := make([]float64, 0, len(o.Rounds))
	for _, round := range o.Rounds {
		all = append(all, m(round[side]))
	}
	return stat.Median(all)
}

// Fastest returns the index of the side with the highest throughput.
func (o *Outcome) Fastest(sides []Side) int {
	best := 0
	for i, side := range sides {
		if o.Of(side.Name, Throughput) > o.Of(sides[best].Name, Throughput) {
			best = i
		}
	}
	return best
}

// Ratios returns, for each round, the measure of one side divided by that of
// another.
func (o *Outcome) Ratios(side, by string, m Measure) []float64 {
	all := make([]float64, 0, len(o.Rounds))
	for _, round := range o.Rounds {
		if r := m(round[side]) / m(round[by]); !math.IsNaN(r) && !math.IsInf(r, 0) {
			all = append(all, r)
		}
	}
	return all
}

// Noisy counts the slots of these sides that other processes disturbed in every
// run.
func (o *Outcome) Noisy(sides ...string) int {
	n := 0
	for _, round := range o.Rounds {
		for _, side := range sides {
			if !round[side].Quiet() {
				n++
			}
		}
	}
	return n
}

// Compared returns the finding of a row that is the ratio of two sides' measures.
func (o *Outcome) Compared(row, side, by string, m Measure) goal.Finding {
	ratios := o.Ratios(side, by, m)
	least, most := stat.Spread(ratios)
	detail := []string{
		fmt.Sprintf("%.2f to %.2f in %d rounds", least, most, len(o.Rounds)),
		o.Describe(side), o.Describe(by),
	}
	return goal.Finding{
		Row: row, Value: stat.Median(ratios),
		Detail: strings.Join(append(detail, o.noise(side, by)...), "; "),
	}
}

// Faster returns the finding of a row that compares throughputs. The wall clock
// decides. If it was noisy and does not show that the goal is reached, the ratio of
// processor time per operation decides, which other processes hardly change. The
// finding then says so.
func (o *Outcome) Faster(row goal.Row, side, by string) goal.Finding {
	wall := o.Compared(row.Name, side, by, Throughput)
	met := func(value float64) bool { return goal.Result{Row: row, Value: value}.Met() }
	why := o.doubtful(side, by)
	cpu := stat.Median(o.Ratios(by, side, CPU))
	if met(wall.Value) || why == "" || !met(cpu) {
		wall.Detail += fmt.Sprintf("; decided by the wall clock; by processor time per operation, of client and server, it is %.2f", cpu)
		return wall
	}
	wall.Detail += fmt.Sprintf("; decided by processor time per operation, of client and server, because %s: %.2f; by the wall clock %.2f",
		why, cpu, wall.Value)
	wall.Value = cpu
	return wall
}

// apart is the mean deviation of the rounds' ratios from their median, as a share
// of the median, above which the wall clock counts as noisy.
const apart = 0.08

// doubtful returns why the wall clock does not compare two sides reliably, and ""
// if it does. A machine whose own speed changes counts as noisy, too.
func (o *Outcome) doubtful(side, by string) string {
	if o.Noisy(side, by) > 0 {
		return "the machine was not quiet"
	}
	ratios := o.Ratios(side, by, Throughput)
	if off := stat.Deviation(ratios); off > apart {
		return fmt.Sprintf("the rounds are %.0f %% apart from their median", 100*off)
	}
	return ""
}

// Describe formats a side's measures: medians over the rounds.
func (o *Outcome) Describe(side string) string {
	took := ""
	if p99 := o.Of(side, P99); p99 > 0 { // a race has no latencies
		took = fmt.Sprintf("p50 %s, p99 %s, ", duration(o.Of(side, Median)), duration(p99))
	}
	return fmt.Sprintf("%s %s/s, %sCPU per operation %.1f µs server, %.1f µs client",
		side, thousands(o.Of(side, Throughput)), took, o.Of(side, ServerCPU), o.Of(side, ClientCPU))
}

func (o *Outcome) noise(sides ...string) []string {
	if n := o.Noisy(sides...); n > 0 {
		return []string{fmt.Sprintf("noisy: others used more than 12 %% of the machine in %d of %d slots, however often they were run",
			n, len(sides)*len(o.Rounds))}
	}
	return nil
}

// thousands formats a rate with three significant digits.
func thousands(v float64) string {
	if v < 10_000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1fk", v/1000)
}

// duration formats microseconds.
func duration(us float64) string {
	if us < 1000 {
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.2f ms", us/1000)
}
