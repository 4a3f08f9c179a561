package contest_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/semelgo/semel/bench/internal/contest"
	"github.com/semelgo/semel/bench/internal/goal"
	"github.com/semelgo/semel/bench/internal/usage"
)

// sampled is a second in which so many operations were done, each for so many
// microseconds of processor time.
func sampled(ops int, cpu time.Duration, foreign float64) contest.Sample {
	return contest.Sample{
		Ops: ops, P50: time.Millisecond, P99: 5 * time.Millisecond,
		Span: usage.Span{Elapsed: time.Second, Client: time.Duration(ops) * cpu / 4, Server: time.Duration(ops) * cpu * 3 / 4, Foreign: foreign},
	}
}

func rounds(foreign float64, ours ...int) *contest.Outcome {
	o := &contest.Outcome{Callers: 64}
	for i, ops := range ours {
		// The machine is slower each round, for both.
		o.Rounds = append(o.Rounds, map[string]contest.Sample{
			"ours":  sampled(ops, 20*time.Microsecond, foreign),
			"plain": sampled(1000/(i+1), 100*time.Microsecond, 0),
		})
	}
	return o
}

// TestRatioIsTheMedianOfRounds and not the ratio of medians.
func TestRatioIsTheMedianOfRounds(t *testing.T) {
	t.Parallel()
	o := rounds(0, 2000, 1500, 1000) // 2, 3, 3 times; by the medians it would be 3 all the same
	o.Rounds[0]["ours"] = sampled(9000, time.Microsecond, 0)
	f := o.Compared("row", "ours", "plain", contest.Throughput)
	if math.Abs(f.Value-3) > 0.01 {
		t.Errorf("9, 3 and 3 times have the median %v, want 3", f.Value)
	}
	o = rounds(0, 1000, 2000, 333)
	if f = o.Compared("row", "ours", "plain", contest.Throughput); math.Abs(f.Value-1) > 0.01 {
		t.Errorf("1, 4 and 1 times have the median %v, want 1", f.Value)
	}
}

// dearer has ours use more of the processors.
func dearer(o *contest.Outcome) *contest.Outcome {
	for _, round := range o.Rounds {
		s := round["ours"]
		s.Client, s.Server = 4*s.Client, 4*s.Server
		round["ours"] = s
	}
	return o
}

// TestProcessorTimeDecidesOnlyWhereTheClockWasNoisy, and only where the wall
// clock does not show that the must is reached.
func TestProcessorTimeDecidesOnlyWhereTheClockWasNoisy(t *testing.T) {
	t.Parallel()
	row := goal.AtLeast("row", "x", 4, 8)
	for _, c := range []struct {
		name string
		o    *contest.Outcome
		want float64
		says string
	}{
		{"quiet and missed", rounds(0, 2000, 1000, 666), 2, "decided by the wall clock"},
		{"quiet and reached", rounds(0, 6000, 3000, 2000), 6, "decided by the wall clock"},
		{"noisy and reached", rounds(0.5, 6000, 3000, 2000), 6, "decided by the wall clock"},
		{"noisy and missed", rounds(0.5, 2000, 1000, 666), 5, "decided by processor time"},
		{"unsteady and missed", rounds(0, 2000, 1500, 500), 5, "25 % apart from their median"},
		{"unsteady and reached", rounds(0, 6000, 4500, 1500), 6, "decided by the wall clock"},
		{"noisy and missed by both", dearer(rounds(0.5, 2000, 1000, 666)), 2, "decided by the wall clock"},
	} {
		f := c.o.Faster(row, "ours", "plain")
		if math.Abs(f.Value-c.want) > 0.02 || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, f.Value, f.Detail, c.want, c.says)
		}
		if noisy := strings.Contains(f.Detail, "3 of 6 slots"); noisy != (c.o.Noisy("ours", "plain") > 0) {
			t.Errorf("%s: said to be noisy is %t: %q", c.name, noisy, f.Detail)
		}
	}
}

// TestProcessorTimeNeverDecidesOtherMeasures: a latency that was disturbed by other
// load is not known.
func TestProcessorTimeNeverDecidesOtherMeasures(t *testing.T) {
	t.Parallel()
	f := rounds(0.5, 1000).Compared("row", "ours", "plain", contest.P99)
	if f.Value != 1 || strings.Contains(f.Detail, "decided by processor") {
		t.Errorf("p99 is %v, %q", f.Value, f.Detail)
	}
}

func TestMeasures(t *testing.T) {
	t.Parallel()
	s := sampled(1000, 20*time.Microsecond, 0)
	for name, c := range map[string]struct {
		measure contest.Measure
		want    float64
	}{
		"throughput": {contest.Throughput, 1000}, "server": {contest.ServerCPU, 15}, "client": {contest.ClientCPU, 5},
		"both": {contest.CPU, 20}, "p50": {contest.Median, 1000}, "p99": {contest.P99, 5000},
	} {
		if got := c.measure(s); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s = %v, want %v", name, got, c.want)
		}
	}
}

func TestFastest(t *testing.T) {
	t.Parallel()
	sides := []contest.Side{{Name: "plain"}, {Name: "ours"}}
	if got := rounds(0, 2000, 1500).Fastest(sides); got != 1 {
		t.Errorf("the fastest is number %d, want 1", got)
	}
	if got := rounds(0, 10, 10).Fastest(sides); got != 0 {
		t.Errorf("the fastest is number %d, want 0", got)
	}
}
